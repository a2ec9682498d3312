// Package wake decides when agents run. What wakes an agent is a row (store.Wake): a change it watches, a timer, a person. The
// row's key is the run key, so the same demand is queued once, on however many servers.
//
// Step, in one transaction, fires the timers whose time has come, takes up runs that were left behind, and starts a run for each
// agent that has due wakes and does not run: all its wakes that can be served together become one run, and end as it does. An
// agent runs once at a time because starting sets agent_runtimes.active_run where it is empty; that also holds between servers.
// Run is a small loop around Step that hands runs to the brain.
//
// Nothing waits in memory. A debounce window, a throttle and a time zone are due times of rows.
package wake
