package main

import "testing"

func TestI20_Scores(t *testing.T) {
	for _, c := range []struct {
		answer          string
		task            task
		calls           []string
		exact, contains bool
		recall          float64
	}{
		{"15 September.", task{Answer: stringList{"15 September"}}, nil, true, true, -1},
		{"  15   SEPTEMBER ", task{Answer: stringList{"September 15", "15 September"}}, nil, true, true, -1},
		{"It is due on 15 September, I think.", task{Answer: stringList{"15 September"}}, nil, false, true, -1},
		{"It is due on 115 Septembers", task{Answer: stringList{"15 September"}}, nil, false, false, -1},
		{"", task{Answer: stringList{"x"}}, nil, false, false, -1},
		{"anything", task{Answer: stringList{"..."}}, nil, false, false, -1},
		{"$5", task{Answer: stringList{"5"}}, nil, false, false, -1},
		{"see <a@x>", task{Sources: stringList{"<a@x>", "b@x", "c@x", "d@x"}},
			[]string{`{"message_id":"<b@x>"}`, `{"query":"c@y"}`}, false, false, 0.5},
	} {
		o := outcome{Answer: c.answer}
		o.score(c.task, c.calls)
		if (o.Exact != nil) != (len(c.task.Answer) > 0) || o.Exact != nil &&
			(*o.Exact != c.exact || *o.Contains != c.contains) {
			t.Errorf("%q against %v: exact %v, contains %v", c.answer, c.task.Answer, o.Exact, o.Contains)
		}
		if (o.Recall != nil) != (c.recall >= 0) || o.Recall != nil && *o.Recall != c.recall {
			t.Errorf("%q: recall %v of %v", c.answer, o.Recall, c.task.Sources)
		}
	}
}
