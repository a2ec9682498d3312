// Package wake decides when agents run.
//
// A wake is a row (reeve.Wake) that requests a run because of a change that the agent watches, a timer, or a person.
// The key of the wake is the run key, so the same request is queued once, even by several servers.
//
//   - Queue accepts requests for runs. Other packages use it without knowing the Scheduler.
//   - Timetable checks schedules against the operator's limits and computes when timers fire. Cadence is the time part
//     of a timer.
//   - Scheduler fires timers, starts runs for due wakes, passes each run to the Brain, and records how it ended.
//
// A timer passes through these functions. Run calls Step. In one transaction, Step fires due timers, which queues their
// wakes (fireTimers), claims runs that no process serves (claimRuns), and starts runs for due wakes (startRuns). Run
// passes each run to serve, which calls the Brain and then recordEnd. In one transaction, endRuns stores the outcome,
// frees the agent, counts failures of the schedule, queues the notification of its user (reportTimerRun) and calls the
// OnEnd handlers. Webhook.Run posts notifications to a URL.
//
// One run serves several wakes when possible: all changes that an agent watches, or all queued firings of a timer,
// unless its misfire policy is RunAllMissed. A manual wake is served alone.
//
// Each lane of an agent has one run at a time, because a lane has at most one row in open_runs. The wakes of an agent
// share one lane. Each schedule (a timer with a goal) has a lane of its own. Turns have no lane and never wait.
// Throttle and mode apply to the agent in every lane.
//
// When a run is ended from outside (by a person, or because its agent is destroyed), the transaction touches the
// workspace. Therefore no call that the gate judged before can be recorded afterwards.
//
// Nothing waits in memory. Debounce windows, throttles and time zones are due times of rows. A timer row holds the
// instant that the timer waits for, so setting the clock back repeats no firing.
package wake
