package mail

import "strings"

// stem takes the endings off an English word, as M.F. Porter's algorithm of 1980 does and SQLite's index with it:
// meetings, meeting and meet are one. The word is in small letters.
func stem(w string) string {
	if len(w) < 3 || len(w) > 64 || !ascii(w) {
		return w
	}
	s := stemmer(w)
	s = s.plurals().past().finalY().
		swap(0, "ational", "ate", "tional", "tion", "enci", "ence", "anci", "ance", "izer", "ize", "bli", "ble", "alli",
			"al", "entli", "ent", "eli", "e", "ousli", "ous", "ization", "ize",
			"ation", "ate", "ator", "ate", "alism", "al", "iveness", "ive", "fulness", "ful", "ousness", "ous", "aliti",
			"al", "iviti", "ive", "biliti", "ble", "logi", "log").
		swap(0, "icate", "ic", "ative", "", "alize", "al", "iciti", "ic", "ical", "ic", "ful", "", "ness", "").
		suffix()
	return string(s.tidy())
}

type stemmer string

// consonant tells whether a letter is one; y is one at the beginning and behind a vowel.
func (s stemmer) consonant(i int) bool {
	switch s[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !s.consonant(i-1)
	}
	return true
}

// measure counts how often vowels are followed by consonants.
func (s stemmer) measure() (n int) {
	vowel := false
	for i := range len(s) {
		if s.consonant(i) {
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

func (s stemmer) vowel() bool {
	for i := range len(s) {
		if !s.consonant(i) {
			return true
		}
	}
	return false
}

// double tells whether it ends in the same consonant twice.
func (s stemmer) double() bool {
	n := len(s)
	return n > 1 && s[n-1] == s[n-2] && s.consonant(n-1)
}

// short tells whether it ends in consonant, vowel, consonant, the last none of w, x and y.
func (s stemmer) short() bool {
	n := len(s)
	return n > 2 && s.consonant(n-3) && !s.consonant(n-2) && s.consonant(n-1) &&
		!strings.ContainsRune("wxy", rune(s[n-1]))
}

func (s stemmer) ends(with string) bool { return strings.HasSuffix(string(s), with) }

// plurals is the first step: caresses, ponies, cats.
func (s stemmer) plurals() stemmer {
	switch n := len(s); {
	case s.ends("sses"), s.ends("ies"):
		return s[:n-2]
	case s.ends("s") && !s.ends("ss"):
		return s[:n-1]
	}
	return s
}

// past is the step for agreed, plastered, motoring.
func (s stemmer) past() stemmer {
	if s.ends("eed") {
		if s[:len(s)-3].measure() > 0 {
			return s[:len(s)-1]
		}
		return s
	}
	base := s
	switch {
	case s.ends("ed") && s[:len(s)-2].vowel():
		base = s[:len(s)-2]
	case s.ends("ing") && s[:len(s)-3].vowel():
		base = s[:len(s)-3]
	default:
		return s
	}
	switch {
	case base.ends("at"), base.ends("bl"), base.ends("iz"):
		return base + "e"
	case base.double() && !base.ends("l") && !base.ends("s") && !base.ends("z"):
		return base[:len(base)-1]
	case base.measure() == 1 && base.short():
		return base + "e"
	}
	return base
}

func (s stemmer) finalY() stemmer {
	if n := len(s); s.ends("y") && s[:n-1].vowel() {
		return s[:n-1] + "i"
	}
	return s
}

// swap puts another ending in the place of the first that fits, if what is before it measures more.
func (s stemmer) swap(more int, pairs ...string) stemmer {
	for i := 0; i < len(pairs); i += 2 {
		if s.ends(pairs[i]) {
			if base := s[:len(s)-len(pairs[i])]; base.measure() > more {
				return base + stemmer(pairs[i+1])
			}
			return s
		}
	}
	return s
}

// suffix takes off what is left of an ending.
func (s stemmer) suffix() stemmer {
	for _, e := range []string{"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
		"ou", "ism", "ate", "iti", "ous", "ive", "ize"} {
		if !s.ends(e) {
			continue
		}
		base := s[:len(s)-len(e)]
		if base.measure() > 1 && (e != "ion" || base.ends("s") || base.ends("t")) {
			return base
		}
		return s
	}
	return s
}

// tidy is the last step: a final e, and a doubled l.
func (s stemmer) tidy() stemmer {
	if n := len(s); s.ends("e") {
		if base := s[:n-1]; base.measure() > 1 || base.measure() == 1 && !base.short() {
			s = base
		}
	}
	if s.ends("ll") && s.measure() > 1 {
		s = s[:len(s)-1]
	}
	return s
}
