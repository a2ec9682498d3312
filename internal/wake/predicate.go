package wake

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"reeve"
)

// predicateCache compiles and caches the predicates of subscriptions. Predicates are CEL expressions, which have no
// unbounded loops, no side effects and no clock. Their cost is limited.
type predicateCache struct {
	env      *cel.Env
	mu       sync.Mutex
	programs map[string]cel.Program
}

// maxEvalCost limits the cost of one evaluation.
const maxEvalCost = 100_000

// maxPrograms limits the number of cached programs.
const maxPrograms = 10_000

func newPredicates() (*predicateCache, error) {
	env, err := cel.NewEnv(cel.Variable("entity", cel.MapType(cel.StringType, cel.DynType)))
	return &predicateCache{env: env, programs: map[string]cel.Program{}}, err
}

// CheckPredicate fails with Validation if an expression is not a valid predicate. An empty expression is valid.
func (r *Scheduler) CheckPredicate(expression string) error {
	if expression == "" {
		return nil
	}
	_, err := r.predicates.compile(expression)
	return err
}

func (p *predicateCache) compile(expression string) (cel.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if prg, ok := p.programs[expression]; ok {
		return prg, nil
	}
	ast, issues := p.env.Compile(expression)
	if issues.Err() != nil {
		return nil, newPredicateError(issues.Err().Error())
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, newPredicateError("it returns " + t.String() + ", not a bool")
	}
	prg, err := p.env.Program(ast, cel.CostLimit(maxEvalCost))
	if err != nil {
		return nil, newPredicateError(err.Error())
	}
	if len(p.programs) >= maxPrograms {
		clear(p.programs)
	}
	p.programs[expression] = prg
	return prg, nil
}

func newPredicateError(reason string) error {
	reason = strings.TrimSpace(reason)
	return &reeve.Error{Code: reeve.Validation, Message: "the predicate is not valid: " + reason,
		Hint: `write CEL over entity, such as entity.category_id == "cat_gym"`,
		Fields: []reeve.Field{{Path: "/predicate", Message: reason,
			Expected: "a CEL expression that returns true or false"}}}
}

// explainMismatch evaluates a predicate. It returns an empty string if the predicate is true for one of the entities,
// and otherwise the reason why it is not. A predicate that uses a field that an entity lacks is false for that entity.
func (p *predicateCache) explainMismatch(expression string, entities []map[string]any) (reason string) {
	prg, err := p.compile(expression)
	if err != nil {
		return "the predicate is not valid" // skip the wake: an error would block the other wakes
	}
	if len(entities) == 0 {
		return "the predicate is false: the agent can see none of the changed entities"
	}
	isEvaluated := false
	for _, e := range entities {
		out, _, err := prg.Eval(map[string]any{"entity": e})
		switch {
		case err != nil:
			reason = renderEvalError(expression, err)
		case out.Value() == true:
			return ""
		default:
			isEvaluated = true
		}
	}
	if isEvaluated {
		return "the predicate is false"
	}
	return "the predicate is false, because it cannot be evaluated: " + reason
}

// renderEvalError returns the message of an evaluation error without values of the entity, because users who may not
// see the entity can read it. It names a missing key only if the expression contains the key.
func renderEvalError(expression string, err error) string {
	message := err.Error()
	if _, key, ok := strings.Cut(message, "no such key: "); ok && key != "" && strings.Contains(expression, key) ||
		strings.HasPrefix(message, "no such overload") {
		return message
	}
	return "it fails on the changed entity"
}
