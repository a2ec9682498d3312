package reeve_test

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reeve"
)

func TestIDsSortInTheOrderTheyWereIssued(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids reeve.IDs
		var got []string
		now := time.UnixMilli(1_700_000_000_000)
		for range rapid.IntRange(2, 50).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(-2, 3).Draw(t, "ms")) * time.Millisecond) // clocks go back too
			got = append(got, ids.New("op", now))
		}
		if !sort.StringsAreSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("not in order or not unique: %v", got)
		}
		for _, id := range got {
			if !reeve.IsID(id) {
				t.Fatalf("%s is not recognised", id)
			}
		}
	})
}

func TestIsID(t *testing.T) {
	for _, s := range []string{"", "op_", "_01m7epad2kx1m37yxg5cr2jpq6", "op_01M7EPAD2KX1M37YXG5CR2JPQ6",
		"op_01m7epad2kx1m37yxg5cr2jpq", "sk_live_abcdefghijklmnopqrstuvwxyz", "opensesame_01m7epad2kx1m37yxg5cr2jpq6"} {
		if reeve.IsID(s) {
			t.Errorf("%q passes for an id", s)
		}
	}
	if k := reeve.DeriveID("op", "a"); !reeve.IsID(k) {
		t.Errorf("%s is not recognised", k)
	}
}

func TestKeysKeepTheirPartsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.String(), 0, 4)
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		if (reeve.DeriveID("op", a...) == reeve.DeriveID("op", b...)) != slices.Equal(a, b) {
			t.Fatalf("keys of %q and %q", a, b)
		}
	})
}

func TestOperationTransitions(t *testing.T) {
	final := map[reeve.State]bool{reeve.Committed: true, reeve.Failed: true, reeve.DeniedOp: true,
		reeve.ProposedOp: true}
	for _, s := range reeve.States() {
		if s.IsFinal() != final[s] {
			t.Errorf("%s: Final() = %v", s, s.IsFinal())
		}
		for _, next := range reeve.States() {
			if err := s.CheckTransition(next); final[s] && err == nil {
				t.Errorf("%s is final, and yet goes to %s", s, next)
			}
		}
	}
	for _, c := range []struct{ from, to reeve.State }{
		{reeve.Dispatched, reeve.Parked}, {reeve.Parked, reeve.Committed}, {reeve.Parked, reeve.Dispatched},
		{reeve.Unknown, reeve.Failed}, {reeve.Dispatched, reeve.DeniedOp},
	} {
		if c.from.CheckTransition(c.to) == nil {
			t.Errorf("%s may not go to %s", c.from, c.to)
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("disk on fire")
	err := error(reeve.Errorf(reeve.Unavailable, "cannot write: %w", cause).Hintf("put it out"))
	reeve.Wrap(&err, "store.Put(%s)", "x")
	err = fmt.Errorf("outer: %w", err)
	if !errors.Is(err, &reeve.Error{Code: reeve.Unavailable}) || !errors.Is(err, cause) ||
		errors.Is(err, &reeve.Error{Code: reeve.NotFound}) {
		t.Errorf("errors.Is by code fails for %v", err)
	}
	if reeve.CodeOf(err) != reeve.Unavailable || reeve.CodeOf(cause) != reeve.Internal || reeve.CodeOf(nil) != "" {
		t.Error("CodeOf")
	}
	if e := reeve.AsError(cause); e.Message != "internal error" || !errors.Is(e, cause) {
		t.Errorf("a foreign error shows as %q", e.Message)
	}
	if e := reeve.AsError(err); e.Hint != "put it out" || e.Op != "store.Put(x)" {
		t.Errorf("%+v", e)
	}
}

func TestPolicyAnswers(t *testing.T) {
	p := reeve.Policy{Tools: map[string]reeve.PolicyAnswer{"rm": reeve.Deny},
		Tiers: map[reeve.Tier]reeve.PolicyAnswer{reeve.Privileged: reeve.Allow, reeve.SideEffecting: reeve.Ask}}
	for _, c := range []struct {
		policy reeve.Policy
		tool   string
		tier   reeve.Tier
		want   reeve.PolicyAnswer
	}{
		{p, "rm", reeve.Privileged, reeve.Deny}, {p, "sh", reeve.Privileged, reeve.Allow},
		{p, "x", reeve.SideEffecting, reeve.Ask}, {p, "x", reeve.ReadOnly, reeve.Allow},
		{reeve.Policy{}, "x", reeve.Privileged, reeve.Ask}, {reeve.Policy{}, "x", reeve.SideEffecting, reeve.Allow},
		{reeve.Policy{}, "x", "strange", reeve.Deny}, {reeve.Policy{}, "x", "", reeve.Deny},
	} {
		if got, _ := c.policy.Answer(c.tool, c.tier); got != c.want {
			t.Errorf("%s of tier %q: %s, want %s", c.tool, c.tier, got, c.want)
		}
	}
}

func TestRoles(t *testing.T) {
	for i, a := range reeve.Roles() {
		for j, b := range reeve.Roles() {
			if a.Allows(b) != (i >= j) {
				t.Errorf("%s allows %s: %v", a, b, a.Allows(b))
			}
		}
	}
	if reeve.Role("").Allows(reeve.Viewer) || reeve.Owner.Allows("") {
		t.Error("an unknown role is allowed something")
	}
}

func TestG07_WithoutAnEffectClassAToolIsUnsafe(t *testing.T) {
	for _, c := range []struct {
		in   reeve.Tool
		tier reeve.Tier
		risk reeve.Risk
	}{
		{reeve.Tool{}, reeve.Privileged, reeve.MediumRisk},
		{reeve.Tool{Effect: reeve.Read}, reeve.ReadOnly, reeve.LowRisk},
		{reeve.Tool{Effect: reeve.Local}, reeve.SideEffecting, reeve.MediumRisk},
	} {
		got := c.in.WithDefaults()
		if c.in.Effect == "" && got.Effect != reeve.Unsafe {
			t.Errorf("effect %s", got.Effect)
		}
		if got.Tier != c.tier || got.Risk != c.risk || got.TimeoutMS == 0 || got.Retry.Attempts != 1 {
			t.Errorf("%+v", got)
		}
	}
	if err := (reeve.Tool{ID: "x", Description: "d", Effect: reeve.Keyed, Tier: reeve.ReadOnly}).WithDefaults().
		Validate(); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a mutating read_only tool: %v", err)
	}
}
