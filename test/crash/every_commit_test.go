package crash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"reeve"
)

// maxCommits limits how many commits a scenario can have.
const maxCommits = 60

// killEverywhere kills servers at every commit and at every step of a request to the witness. On PostgreSQL, the short
// form runs only the scenarios named after an effect class, and kills at commits only for local and verifiable.
func (r *rig) killEverywhere(engines []*engine) {
	var jobs, slow []func() // slow jobs wait until the next server declares the killed one dead
	for _, e := range engines {
		quick := !*crashFull && e.server != nil
		for _, s := range scenarios {
			plain := s.name == string(s.class)
			if quick && !plain {
				continue
			}
			if s.class != reeve.Local {
				for i, faults := range listEffectFaults(*crashFull || plain || s.class == reeve.Unsafe) {
					honest := e.server != nil && (*crashFull || i == 1)
					job := func() {
						if _, err := r.runTrial(e, s, honest, faults...); err != nil {
							r.t.Errorf("%s, %s, %v: %v", e.name, s.name, faults, err)
						}
					}
					if honest {
						slow = append(slow, job)
					} else {
						jobs = append(jobs, job)
					}
				}
			}
			if quick && s.class != reeve.Verifiable && s.class != reeve.Local {
				continue
			}
			for _, when := range []string{"before", "after"} {
				first := 1
				if !plain {
					first = r.firstCommit(e)
				}
				jobs = append(jobs, func() { r.killAtCommits(e, s, fault{commit: first, when: when}) })
				if s.class == reeve.Local || !*crashFull && !plain {
					continue
				}
				// Again while it recovers: from a request that arrived, and from one that did not.
				jobs = append(jobs, func() {
					r.killAtCommits(e, s, fault{plans: []witnessPlan{{Do: "kill", When: "counted"}}}, fault{commit: 1, when: when})
				})
				if *crashFull || s.class == reeve.Unsafe {
					jobs = append(jobs, func() {
						r.killAtCommits(e, s, fault{plans: []witnessPlan{{Do: "kill", When: "before"}}},
							fault{commit: 1, when: when})
					})
				}
			}
		}
		for _, when := range []string{"before", "after"} {
			jobs = append(jobs, func() { r.killAtFirstStart(e, when) })
		}
	}
	var group sync.WaitGroup
	group.Go(func() { runJobs(make(chan struct{}, 20), slow) })
	runJobs(pointSlots, jobs)
	group.Wait()
}

// pointSlots limits how many points of all sweeps are tried at once. Each keeps a server busy.
var pointSlots = make(chan struct{}, 6)

// runJobs runs jobs, each when a slot is free.
func runJobs(slots chan struct{}, jobs []func()) {
	var group sync.WaitGroup
	for _, job := range jobs {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			job()
		})
	}
	group.Wait()
}

// killAtCommits repeats the scenario with its last fault at each commit in turn, until a life survives. The short form
// tries every second kill before a commit on SQLite, and every fifth of the others.
func (r *rig) killAtCommits(e *engine, s scenario, faults ...fault) {
	last, step := &faults[len(faults)-1], 1
	switch {
	case *crashFull:
	case e.server != nil || last.when == "after":
		step = 5
	default:
		step = 2
	}
	for failures := 0; last.commit <= maxCommits && failures < 3; last.commit += step {
		fired, err := r.runTrial(e, s, false, faults...)
		if err != nil {
			r.t.Errorf("%s, %s, %v: %v", e.name, s.name, faults, err)
			failures++
		} else if !fired {
			return
		}
	}
	if last.commit > maxCommits {
		r.t.Errorf("%s, %s: it never stops committing", e.name, s.name)
	}
}

// listEffectFaults returns the faults that can happen to a request, each as a series of lives.
func listEffectFaults(everything bool) (all [][]fault) {
	one := func(do, when string) fault { return fault{plans: []witnessPlan{{Do: do, When: when}}} }
	for _, when := range []string{"before", "counted", "answered"} {
		all = append(all, []fault{one("kill", when)})
	}
	if !everything {
		return all
	}
	for _, do := range []string{"drop", "fail", "hang"} {
		all = append(all, []fault{one(do, "before")}, []fault{one(do, "counted")})
	}
	// Twice: what is sent again meets the same fate.
	for _, first := range []string{"before", "counted"} {
		all = append(all, []fault{{plans: []witnessPlan{{Do: "drop", When: first}, {Do: "kill", When: "before"}}}},
			[]fault{{plans: []witnessPlan{{Do: "drop", When: first}, {Do: "kill", When: "counted"}}}})
		for _, second := range []string{"before", "counted", "answered"} {
			if *crashFull {
				all = append(all, []fault{one("kill", first), one("kill", second)})
			}
		}
	}
	return all
}

// firstCommits has the results of firstCommit by engine.
var firstCommits = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// firstCommit returns the commit at which a sweep of a prepared world begins. Every server makes the same commits
// before it answers, so the short form kills there only in the plain scenarios of TestCrash.
func (r *rig) firstCommit(e *engine) int {
	if *crashFull {
		return 1
	}
	firstCommits.Lock()
	defer firstCommits.Unlock()
	if n, ok := firstCommits.of[e.name]; ok {
		return n
	}
	for n := 1; n <= maxCommits; n++ {
		answered, err := r.answersBeforeCommit(e, n)
		if err != nil {
			r.t.Errorf("%s, start, kill before commit %d: %v", e.name, n, err)
			return 1
		}
		if answered {
			firstCommits.of[e.name] = n
			return n
		}
	}
	r.t.Errorf("%s: the server commits and does not answer", e.name)
	return 1
}

// answersBeforeCommit reports whether a server that is killed before a commit has answered until then.
func (r *rig) answersBeforeCommit(e *engine, commit int) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	w, err := e.newPreparedWorld()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	p, err := r.serve(w, fault{commit: commit, when: "before"}.env()...)
	if err != nil {
		return false, err
	}
	defer p.kill()
	if err = p.waitUntilReady(ctx); errors.Is(err, errGone) {
		return false, nil
	}
	return err == nil, err
}

// killAtFirstStart kills a server at each commit of its first start, and checks that the owner can log in afterwards.
func (r *rig) killAtFirstStart(e *engine, when string) {
	for n := 1; n <= maxCommits; n++ {
		fired, err := r.firstStart(e, fault{commit: n, when: when})
		if err != nil {
			r.t.Errorf("%s, first start, kill %s commit %d: %v", e.name, when, n, err)
		}
		if !fired {
			return
		}
	}
}

func (r *rig) firstStart(e *engine, f fault) (fired bool, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	w, err := e.newEmptyWorld()
	if err != nil {
		return false, err
	}
	defer func() { _ = w.remove() }()
	first, err := r.serve(w, f.env()...)
	if err != nil {
		return false, err
	}
	defer first.kill()
	if err = first.waitUntilReady(ctx); err == nil {
		err = first.stop()
	}
	if err != nil && !errors.Is(err, errGone) {
		return false, err
	}
	fired = first.killed
	p, err := r.serve(w)
	if err != nil {
		return fired, err
	}
	defer p.kill()
	if err := p.waitUntilReady(ctx); err != nil {
		return fired, err
	}
	c, err := w.owner(p, unlimited)
	if err == nil {
		err = c.do(ctx, "GET", "/api/status", nil, nil)
	}
	if err != nil {
		return fired, fmt.Errorf("the owner cannot get in: %w", err)
	}
	return fired, p.stop()
}
