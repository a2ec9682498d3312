package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A person fires a schedule now: once per key, beside its planned firings, and only while it is active.
func TestC17_AScheduleIsFiredByHand(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		kit.SetRehearsal(h, h.Agent("clerk").ID, "done")
		var s api.Schedule
		h.Want(http.StatusCreated, &s, "POST", "/api/schedules", kit.Object{"agent": "clerk", "name": "Morning",
			"cadence_type": "cron", "cadence_value": "0 7 * * *", "timezone": "Europe/Berlin", "goal": "sum up"})
		if len(s.Upcoming) != 10 {
			t.Errorf("%d upcoming firings", len(s.Upcoming))
		}
		var first, again reeve.Wake
		h.Want(http.StatusCreated, &first, "POST", "/api/schedules/"+s.ID+"/run", nil, "Idempotency-Key", "k1")
		h.Want(http.StatusCreated, &again, "POST", "/api/schedules/"+s.ID+"/run", nil, "Idempotency-Key", "k1")
		if first.RunKey == "" || first.RunKey != again.RunKey {
			t.Errorf("%q, then %q", first.RunKey, again.RunKey)
		}
		kit.WaitUntilIdle(h)
		var runs api.RunList
		h.Want(http.StatusOK, &runs, "GET", "/api/schedules/"+s.ID+"/runs", nil)
		if len(runs.Runs) != 1 || runs.Runs[0].State != reeve.RunCompleted || runs.Runs[0].Input != "sum up" {
			t.Errorf("%+v", runs.Runs)
		}
		var after api.Schedule
		h.Want(http.StatusOK, &after, "GET", "/api/schedules/"+s.ID, nil)
		if !after.NextAt.Equal(*s.NextAt) {
			t.Errorf("the next firing moved from %v to %v", s.NextAt, after.NextAt)
		}
		h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"status": "paused"})
		h.Want(http.StatusConflict, nil, "POST", "/api/schedules/"+s.ID+"/run", nil)
	})
}

// A predicate is tested on past changes, each with its entity as the change left it.
func TestC17_APredicateIsTestedOnPastChanges(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		clerk := h.Agent("clerk")
		var category, other reeve.Category
		var task reeve.Task
		h.Want(http.StatusCreated, &category, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		h.Want(http.StatusCreated, &other, "POST", "/api/journal/categories", kit.Object{"name": "Home"})
		kit.UpdateAgent(h, clerk, kit.Object{"categories": []string{category.ID}})
		h.Want(http.StatusCreated, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": category.ID,
			"title": "Squat"})
		h.Want(http.StatusCreated, nil, "POST", "/api/journal/tasks", kit.Object{"category_id": other.ID,
			"title": "Hidden", "status": "done"})
		for _, status := range []string{"in_progress", "done", "open"} {
			h.Want(http.StatusOK, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"status": status})
		}
		try := func(class, name, predicate string) (holds string) {
			var l api.PredicateTrialList
			h.Want(http.StatusOK, &l, "GET", "/api/agents/clerk/subscriptions/trial?"+url.Values{"class": {class},
				"name": {name}, "predicate": {predicate}}.Encode(), nil)
			for _, trial := range l.Trials {
				switch {
				case trial.Holds != (trial.Why == ""):
					t.Errorf("%+v", trial)
				case trial.Holds:
					holds += "+"
				default:
					holds += "-"
				}
			}
			return holds
		}
		for _, c := range []struct{ class, name, predicate, want string }{
			{"key", "TASK", `entity.status == "done"`, "-+---"}, // open, done, in progress, of another category, created
			{"key", "TASK", `entity.status == "open"`, "+---+"},
			{"key", "TASK", "", "+++++"},
			{"id", task.ID, `entity.status == "in_progress"`, "--+-"},
			{"subtype", "task.done", `entity.title == "Squat"`, "+-"},
		} {
			if got := try(c.class, c.name, c.predicate); got != c.want {
				t.Errorf("%s:%s %s: %s, want %s", c.class, c.name, c.predicate, got, c.want)
			}
		}
		h.Want(http.StatusBadRequest, nil, "GET",
			"/api/agents/clerk/subscriptions/trial?class=key&name=TASK&predicate=entity.", nil)
	})
}

// People search mail with the query of email_search, and read a mail without its secrets.
func TestC19_PeopleSearchAndReadMail(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		if _, err := h.InstallSampleMail(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		h.Agent("reader", "email_search")
		for _, query := range []string{`invoice`, `"invoice" OR budget`, `from:mara -invoice`, ``} {
			var page reeve.MailPage
			h.Want(http.StatusOK, &page, "GET", "/api/mail/search?limit=5&query="+url.QueryEscape(query), nil)
			asAgent := kit.DecodeResult[reeve.MailPage](t, h.Call("reader", "email_search",
				kit.Object{"query": query, "limit": 5}))
			if len(page.Emails) != len(asAgent.Emails) || page.Next != asAgent.Next {
				t.Fatalf("%s: %+v, but email_search finds %+v", query, page, asAgent)
			}
			for i, e := range page.Emails {
				if e.MessageID != asAgent.Emails[i].MessageID || e.Snippet != asAgent.Emails[i].Snippet {
					t.Errorf("%s: %+v, but email_search finds %+v", query, e, asAgent.Emails[i])
				}
			}
		}
		var page reeve.MailPage
		h.Want(http.StatusOK, &page, "GET", "/api/mail/search?limit=1", nil)
		h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/HALL", kit.Object{"value": "fernhill"})
		var e reeve.Email
		id := url.QueryEscape(page.Emails[0].MessageID)
		h.Want(http.StatusOK, &e, "GET", "/api/mail/message?message_id="+id, nil)
		if e.Body == "" || e.Date == nil || !strings.HasSuffix(e.Sender, "@[REDACTED].example") {
			t.Errorf("%+v", e)
		}
		h.Want(http.StatusNotFound, nil, "GET", "/api/mail/message?message_id=none", nil)
	})
}
