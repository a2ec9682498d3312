package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// mail tests searches for words that nearly every email contains.
var mail = map[string]func(*testing.T, *store.DB){
	"search with many matches": func(t *testing.T, db *store.DB) {
		var list []reeve.Email
		for i := range 60 {
			sent := time.Date(2026, 9, 1+(i*7)%28, 10, 0, 0, 0, time.UTC)
			e := reeve.Email{MessageID: fmt.Sprintf("m%02d", i), Inbox: fmt.Sprint("box", i%3), Subject: "report",
				Sender: "a@x.example", Date: &sent, Body: "please read the report"}
			if i%10 == 0 {
				e.Body += " about penguins"
			}
			list = append(list, e)
		}
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Mail().AddMail(t.Context(), ws, "", list, false)
			return err
		})
		inboxes := view(t, db, func(s *store.Snap) ([]store.Inbox, error) {
			return s.Mail().ListInboxes(t.Context(), ws)
		})
		word := func(words ...string) (q store.MailQuery) {
			for _, w := range words {
				q.All = append(q.All, []store.MailTerm{{Words: []string{w}}})
			}
			return q
		}
		// byDate returns the emails that match, newest first.
		byDate := func(match func(reeve.Email) bool) (want []string) {
			for _, e := range slices.SortedFunc(slices.Values(list),
				func(a, b reeve.Email) int { return b.Date.Compare(*a.Date) }) {
				if match(e) {
					want = append(want, e.Date.Format("02 ")+e.MessageID)
				}
			}
			return want
		}
		read := func(q store.MailSearch) (got []string, crowded bool) {
			t.Helper()
			q.Limit = 7
			for range 20 {
				page := view(t, db, func(s *store.Snap) (store.MailPage, error) {
					return s.Mail().SearchMail(t.Context(), q)
				})
				for _, m := range page.Mails {
					got = append(got, m.Date.Format("02 ")+m.MessageID)
				}
				crowded = crowded || page.TooManyToRank
				if q.After = page.Next; q.After == nil {
					return got, crowded
				}
			}
			t.Fatalf("more than 20 pages: %v", got)
			return nil, false
		}
		check := func(what string, q store.MailSearch, wantCrowded bool, want []string) {
			t.Helper()
			got, crowded := read(q)
			equal(t, crowded, wantCrowded, "%s: crowded", what)
			days := func(s []string) string { return joinIDs(s, func(s string) string { return s[:2] }) }
			if wantCrowded && days(got) != days(want) {
				t.Fatalf("%s: not in order of date: %v", what, got)
			}
			slices.Sort(got)
			slices.Sort(want)
			equal(t, strings.Join(got, ","), strings.Join(want, ","), "%s", what)
		}
		any := func(reeve.Email) bool { return true }
		isAboutPenguins := func(e reeve.Email) bool { return strings.Contains(e.Body, "penguins") }
		for name, in := range map[string][]store.Inbox{"all": inboxes, "two": inboxes[1:]} {
			inSearched := func(match func(reeve.Email) bool) func(reeve.Email) bool {
				return func(e reeve.Email) bool {
					return match(e) && slices.ContainsFunc(in, func(i store.Inbox) bool { return i.Name == e.Inbox })
				}
			}
			q := func(most int, words ...string) store.MailSearch {
				return store.MailSearch{Query: word(words...), Inboxes: in, All: len(in) == len(inboxes),
					MaxRanked: most}
			}
			check(name+": within the ranking limit", q(60, "report"), false, byDate(inSearched(any)))
			check(name+": over the ranking limit", q(10, "report"), true, byDate(inSearched(any)))
			check(name+": a common and a rare word", q(10, "report", "penguin"), false,
				byDate(inSearched(isAboutPenguins)))
			// the limit counts the matches, not all emails
			if got, crowded := read(q(19, "penguin")); crowded || len(got) == 0 {
				t.Fatalf("%s: a rare word: %v, %v", name, got, crowded)
			}
			check(name+": slightly over the ranking limit", q(19, "report"), true, byDate(inSearched(any)))
			either := q(10, "report")
			either.Query.All[0] = append(either.Query.All[0], store.MailTerm{Words: []string{"penguin"}})
			check(name+": either of two words", either, true, byDate(inSearched(any)))
			without := q(10, "report")
			without.Query.None = []store.MailTerm{{Words: []string{"penguin"}}}
			check(name+": without a rare word", without, true,
				byDate(inSearched(func(e reeve.Email) bool { return !isAboutPenguins(e) })))
			dated := q(5, "report")
			dated.From, dated.To = time.Date(2026, 9, 5, 0, 0, 0, 0, time.UTC),
				time.Date(2026, 9, 12, 0, 0, 0, 0, time.UTC)
			check(name+": within a week", dated, true,
				byDate(inSearched(func(e reeve.Email) bool {
					return !e.Date.Before(dated.From) && e.Date.Before(dated.To)
				})))
		}
	},
}
