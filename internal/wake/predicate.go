package wake

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"reeve"
)

// predicates compiles and keeps the expressions that subscriptions ask. The language is CEL: it has no loops without
// end, no side effects and no clock, and its cost is bounded.
type predicates struct {
	env *cel.Env
	mu  sync.Mutex
	by  map[string]cel.Program
}

// maxCost bounds what one evaluation may do.
const maxCost = 100_000

// maxKept bounds how many compiled expressions are kept.
const maxKept = 10_000

func newPredicates() (*predicates, error) {
	env, err := cel.NewEnv(cel.Variable("entity", cel.MapType(cel.StringType, cel.DynType)))
	return &predicates{env: env, by: map[string]cel.Program{}}, err
}

// CheckPredicate tells whether an expression can be a predicate.
func (r *Scheduler) CheckPredicate(expression string) error {
	if expression == "" {
		return nil
	}
	_, err := r.predicates.compile(expression)
	return err
}

func (p *predicates) compile(expression string) (cel.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if prg, ok := p.by[expression]; ok {
		return prg, nil
	}
	ast, issues := p.env.Compile(expression)
	if issues.Err() != nil {
		return nil, wrongPredicate(issues.Err().Error())
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, wrongPredicate("it gives " + t.String() + ", not true or false")
	}
	prg, err := p.env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, wrongPredicate(err.Error())
	}
	if len(p.by) >= maxKept {
		clear(p.by)
	}
	p.by[expression] = prg
	return prg, nil
}

func wrongPredicate(why string) error {
	why = strings.TrimSpace(why)
	return &reeve.Error{Code: reeve.Validation, Message: "the predicate is not valid: " + why,
		Hint: `write CEL over entity, such as entity.category_id == "cat_gym"`,
		Fields: []reeve.Field{{Path: "/predicate", Message: why,
			Expected: "a CEL expression that gives true or false"}}}
}

// fails asks the predicate about entities: it holds if it is true for one of them. A field that an entity does not have
// makes it false for that entity. It says why the predicate does not hold, or nothing.
func (p *predicates) fails(expression string, entities []map[string]any) (why string) {
	prg, err := p.compile(expression)
	if err != nil {
		return "the predicate is not valid" // a subscription that cannot be asked must not stop the others
	}
	if len(entities) == 0 {
		return "the predicate does not hold: nothing of what changed is there for the agent to see"
	}
	answered := false
	for _, e := range entities {
		out, _, err := prg.Eval(map[string]any{"entity": e})
		switch {
		case err != nil:
			why = reason(expression, err)
		case out.Value() == true:
			return ""
		default:
			answered = true
		}
	}
	if answered {
		return "the predicate does not hold"
	}
	return "the predicate does not hold, as it cannot be asked: " + why
}

// reason says why an expression could not be asked, without what is in the entity: others than its user read it. A key
// that is not there is told if the expression itself names it.
func reason(expression string, err error) string {
	said := err.Error()
	if _, key, ok := strings.Cut(said, "no such key: "); ok && key != "" && strings.Contains(expression, key) ||
		strings.HasPrefix(said, "no such overload") {
		return said
	}
	return "it fails on what changed"
}
