package wake

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reeve"
)

// Predicates behave as docs/wakes.md describes.
func TestL06_PredicatesAsDocumented(t *testing.T) {
	t.Parallel()
	p, err := newPredicates()
	if err != nil {
		t.Fatal(err)
	}
	task := map[string]any{"kind": "task", "priority": "high", "estimate_minutes": 45.0,
		"created_at": "2026-03-01T07:00:00Z", "label_ids": []any{"lab_1"}}
	category := map[string]any{"kind": "category", "name": "Gym"}
	const no, missing = "the predicate is false",
		"the predicate is false, because it cannot be evaluated: no such key: due_date"
	for expression, want := range map[string]string{
		`entity.kind == "task" && entity.priority == "high"`: "",
		`entity.name == "Gym"`:                               "", // true for one entity
		`entity.kind == "task" && entity.name == "Gym"`:      no,
		`entity.due_date == "2026-03-01"`:                    missing,
		`entity.due_date != "2026-03-01"`:                    missing,
		`!has(entity.due_date)`:                              "",
		// values of the entity are not shown
		`{"a": true}[entity.kind]`: no + ", because it cannot be evaluated: it fails on the changed entity",
		`timestamp(entity.kind) == timestamp("2026-03-01T08:00:00Z")`: no +
			", because it cannot be evaluated: it fails on the changed entity",
		`"x".matches(entity.kind + "(")`:                                   no + ", because it cannot be evaluated: it fails on the changed entity",
		`entity.kind > 1`:                                                  no + ", because it cannot be evaluated: no such overload",
		`entity.estimate_minutes > 30`:                                     "",
		`entity.estimate_minutes > 30.5`:                                   "",
		`entity.estimate_minutes == 45`:                                    "",
		`"lab_1" in entity.label_ids`:                                      "",
		`timestamp(entity.created_at) < timestamp("2026-03-01T08:00:00Z")`: "",
	} {
		if got := p.explainMismatch(expression, []map[string]any{task, category}); got != want {
			t.Errorf("%s: %s", expression, got)
		}
	}
	if got := p.explainMismatch("true", nil); got != no+": the agent can see none of the changed entities" {
		t.Errorf("without entities: %s", got)
	}
}

// The table of fields in docs/wakes.md matches the types.
func TestL06_FieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/wakes.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("\\(?`(\\w+)`\\)?")
	for kind, v := range map[string]any{"category": reeve.Category{}, "label": reeve.Label{}, "task": reeve.Task{},
		"checklist": reeve.Checklist{}, "checklist_item": reeve.ChecklistItem{},
		"time_entry": reeve.TimeEntry{}, "day_plan": reeve.DayPlan{}, "plan_block": reeve.PlanBlock{},
		"rating": reeve.Rating{}} {
		var want, got []string
		if kind == "checklist_item" {
			want = append(want, "`task_id`") // the task of its checklist
		}
		for f := range reflect.TypeOf(v).Fields() {
			tag, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			// common fields, and fields with other entities
			case f.Anonymous || slices.Contains([]string{"items", "blocks", "pinned_task_ids"}, tag):
			case option == "omitempty":
				want = append(want, "(`"+tag+"`)")
			default:
				want = append(want, "`"+tag+"`")
			}
		}
		_, row, _ := strings.Cut(string(doc), "\n| `"+kind+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		got = name.FindAllString(row, -1)
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: documented fields %v, want %v", kind, got, want)
		}
	}
}
