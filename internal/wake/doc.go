// Package wake decides when agents run. What wakes an agent is a row (store.Wake): a change it watches, a timer, a
// person. The row's key is the run key, so the same demand is queued once, on however many servers.
//
// Other parts ask for runs through a Queue, and plan timers with a Planner. The Scheduler works the queue off. It is
// made last, with the brain and with the handlers of what follows from the end of a run.
//
// Step, in one transaction, fires the timers whose time has come, takes up runs that were left behind, and starts a run
// for each agent that has due wakes and does not run: all its wakes that can be served together become one run, and end
// as it does. An agent runs once at a time because a lane has one row of open_runs; that also holds between servers.
// Run is a small loop around Step that hands runs to the brain; their ends are recorded beside it, all that are done in
// one transaction. Deliver is one that sends notifications to a webhook.
//
// What is served together: all changes that an agent watches; all firings of one timer that queued up behind a run,
// unless each is to run (misfire "all"). A person's demand is served alone. A schedule, which is a timer with a goal,
// has its own lane: its runs wait for each other, and not for the agent's other runs, so that a slow schedule delays no
// other. A throttle and a mode apply to the agent, whatever the lane.
//
// A run ends in one transaction with all that follows: its agent is free, its schedule's failures are counted, its
// person is told and the conversation that made the schedule has the answer. Ending a run from outside (a person, the
// agent's end) touches the workspace, so that no call that was judged before can be recorded after.
//
// Nothing waits in memory. A debounce window, a throttle and a time zone are due times of rows. The instant that a
// timer waits for is in its row: a clock that is put back repeats nothing.
package wake
