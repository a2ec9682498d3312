package mail

import "strings"

// stem removes the endings of a lower-case English word with M.F. Porter's algorithm of 1980, which the SQLite index
// uses too. meetings, meeting and meet have the same stem.
func stem(w string) string {
	if len(w) < 3 || len(w) > 64 || !isASCII(w) {
		return w
	}
	s := stemmer(w)
	s = s.trimPlural().trimPast().replaceFinalY().replaceSuffix(0, "ational", "ate", "tional", "tion", "enci", "ence",
		"anci", "ance", "izer", "ize", "bli", "ble", "alli", "al", "entli", "ent", "eli", "e", "ousli", "ous",
		"ization", "ize", "ation", "ate", "ator", "ate", "alism", "al", "iveness", "ive", "fulness", "ful", "ousness",
		"ous", "aliti", "al", "iviti", "ive", "biliti", "ble", "logi", "log").
		replaceSuffix(0, "icate", "ic", "ative", "", "alize", "al", "iciti", "ic", "ical", "ic", "ful", "", "ness", "").
		trimSuffix()
	return string(s.trimFinal())
}

type stemmer string

// isConsonant reports whether the letter at i is a consonant. y is one at the beginning and after a vowel.
func (s stemmer) isConsonant(i int) bool {
	switch s[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !s.isConsonant(i-1)
	}
	return true
}

// measure counts the vowel-consonant sequences.
func (s stemmer) measure() (n int) {
	vowel := false
	for i := range len(s) {
		if s.isConsonant(i) {
			if vowel {
				n++
			}
			vowel = false
		} else {
			vowel = true
		}
	}
	return n
}

func (s stemmer) hasVowel() bool {
	for i := range len(s) {
		if !s.isConsonant(i) {
			return true
		}
	}
	return false
}

// endsInDoubleConsonant reports whether the word ends in the same consonant twice.
func (s stemmer) endsInDoubleConsonant() bool {
	n := len(s)
	return n > 1 && s[n-1] == s[n-2] && s.isConsonant(n-1)
}

// endsInShortSyllable reports whether the word ends in consonant, vowel, consonant, and the last is not w, x or y.
func (s stemmer) endsInShortSyllable() bool {
	n := len(s)
	return n > 2 && s.isConsonant(n-3) && !s.isConsonant(n-2) && s.isConsonant(n-1) &&
		!strings.ContainsRune("wxy", rune(s[n-1]))
}

func (s stemmer) hasSuffix(with string) bool { return strings.HasSuffix(string(s), with) }

// trimPlural is step 1a: caresses, ponies, cats.
func (s stemmer) trimPlural() stemmer {
	switch n := len(s); {
	case s.hasSuffix("sses"), s.hasSuffix("ies"):
		return s[:n-2]
	case s.hasSuffix("s") && !s.hasSuffix("ss"):
		return s[:n-1]
	}
	return s
}

// trimPast is step 1b: agreed, plastered, motoring.
func (s stemmer) trimPast() stemmer {
	if s.hasSuffix("eed") {
		if s[:len(s)-3].measure() > 0 {
			return s[:len(s)-1]
		}
		return s
	}
	base := s
	switch {
	case s.hasSuffix("ed") && s[:len(s)-2].hasVowel():
		base = s[:len(s)-2]
	case s.hasSuffix("ing") && s[:len(s)-3].hasVowel():
		base = s[:len(s)-3]
	default:
		return s
	}
	switch {
	case base.hasSuffix("at"), base.hasSuffix("bl"), base.hasSuffix("iz"):
		return base + "e"
	case base.endsInDoubleConsonant() && !base.hasSuffix("l") && !base.hasSuffix("s") && !base.hasSuffix("z"):
		return base[:len(base)-1]
	case base.measure() == 1 && base.endsInShortSyllable():
		return base + "e"
	}
	return base
}

func (s stemmer) replaceFinalY() stemmer {
	if n := len(s); s.hasSuffix("y") && s[:n-1].hasVowel() {
		return s[:n-1] + "i"
	}
	return s
}

// replaceSuffix replaces the first suffix that fits by its pair, if the measure of the rest is greater than more.
func (s stemmer) replaceSuffix(more int, pairs ...string) stemmer {
	for i := 0; i < len(pairs); i += 2 {
		if s.hasSuffix(pairs[i]) {
			if base := s[:len(s)-len(pairs[i])]; base.measure() > more {
				return base + stemmer(pairs[i+1])
			}
			return s
		}
	}
	return s
}

// trimSuffix is step 4. It removes a remaining suffix.
func (s stemmer) trimSuffix() stemmer {
	for _, e := range []string{"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
		"ou", "ism", "ate", "iti", "ous", "ive", "ize"} {
		if !s.hasSuffix(e) {
			continue
		}
		base := s[:len(s)-len(e)]
		if base.measure() > 1 && (e != "ion" || base.hasSuffix("s") || base.hasSuffix("t")) {
			return base
		}
		return s
	}
	return s
}

// trimFinal is step 5. It removes a final e and the second of a doubled l.
func (s stemmer) trimFinal() stemmer {
	if n := len(s); s.hasSuffix("e") {
		if base := s[:n-1]; base.measure() > 1 || base.measure() == 1 && !base.endsInShortSyllable() {
			s = base
		}
	}
	if s.hasSuffix("ll") && s.measure() > 1 {
		s = s[:len(s)-1]
	}
	return s
}
