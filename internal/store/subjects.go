package store

// The queries are grouped by subject. A Snap returns groups that read. A Tx returns groups that also write; the names
// of their types end in Tx. Groups of one Tx share its transaction, so a change may use several of them.

// Agents reads workspaces, tokens, agents, tools, secrets, projects and branches.
type Agents struct{ *Snap }

// AgentsTx is Agents within a transaction that may write.
type AgentsTx struct {
	Agents
	tx *Tx
}

// Agents returns the queries of workspaces, tokens, agents, tools, secrets, projects and branches.
func (s *Snap) Agents() Agents { return Agents{s} }

// Agents returns the queries of workspaces, tokens, agents, tools, secrets, projects and branches.
func (t *Tx) Agents() AgentsTx { return AgentsTx{Agents{&t.Snap}, t} }

// Ledger reads calls, messages, approvals, proposals, budgets and outputs. See [Ledger.VisibleTo].
type Ledger struct {
	*Snap
	viewer *string // nil sees everything
}

// LedgerTx is Ledger within a transaction that may write.
type LedgerTx struct {
	Ledger
	tx *Tx
}

// Ledger returns the queries of calls, messages, approvals, proposals, budgets and outputs.
func (s *Snap) Ledger() Ledger { return Ledger{Snap: s} }

// Ledger returns the queries of calls, messages, approvals, proposals, budgets and outputs.
func (t *Tx) Ledger() LedgerTx { return LedgerTx{Ledger{Snap: &t.Snap}, t} }

// Queue reads wakes, timers, subscriptions and notifications.
type Queue struct{ *Snap }

// QueueTx is Queue within a transaction that may write.
type QueueTx struct {
	Queue
	tx *Tx
}

// Queue returns the queries of wakes, timers, subscriptions and notifications.
func (s *Snap) Queue() Queue { return Queue{s} }

// Queue returns the queries of wakes, timers, subscriptions and notifications.
func (t *Tx) Queue() QueueTx { return QueueTx{Queue{&t.Snap}, t} }

// Runs reads runs, their ends and their failures.
type Runs struct{ *Snap }

// RunsTx is Runs within a transaction that may write.
type RunsTx struct {
	Runs
	tx *Tx
}

// Runs returns the queries of runs, their ends and their failures.
func (s *Snap) Runs() Runs { return Runs{s} }

// Runs returns the queries of runs, their ends and their failures.
func (t *Tx) Runs() RunsTx { return RunsTx{Runs{&t.Snap}, t} }

// Chat reads conversations, frames, session files, scratchpads and summaries.
type Chat struct{ *Snap }

// ChatTx is Chat within a transaction that may write.
type ChatTx struct {
	Chat
	tx *Tx
}

// Chat returns the queries of conversations, frames, session files, scratchpads and summaries.
func (s *Snap) Chat() Chat { return Chat{s} }

// Chat returns the queries of conversations, frames, session files, scratchpads and summaries.
func (t *Tx) Chat() ChatTx { return ChatTx{Chat{&t.Snap}, t} }

// Automations reads script versions, items and script jobs.
type Automations struct{ *Snap }

// AutomationsTx is Automations within a transaction that may write.
type AutomationsTx struct {
	Automations
	tx *Tx
}

// Automations returns the queries of script versions, items and script jobs.
func (s *Snap) Automations() Automations { return Automations{s} }

// Automations returns the queries of script versions, items and script jobs.
func (t *Tx) Automations() AutomationsTx { return AutomationsTx{Automations{&t.Snap}, t} }

// Mail reads mailboxes and their search.
type Mail struct{ *Snap }

// MailTx is Mail within a transaction that may write.
type MailTx struct {
	Mail
	tx *Tx
}

// Mail returns the queries of mailboxes and their search.
func (s *Snap) Mail() Mail { return Mail{s} }

// Mail returns the queries of mailboxes and their search.
func (t *Tx) Mail() MailTx { return MailTx{Mail{&t.Snap}, t} }

// Notes reads notes and their recall.
type Notes struct{ *Snap }

// NotesTx is Notes within a transaction that may write.
type NotesTx struct {
	Notes
	tx *Tx
}

// Notes returns the queries of notes and their recall.
func (s *Snap) Notes() Notes { return Notes{s} }

// Notes returns the queries of notes and their recall.
func (t *Tx) Notes() NotesTx { return NotesTx{Notes{&t.Snap}, t} }

// System reads processes, holds and figures of the whole server.
type System struct{ *Snap }

// SystemTx is System within a transaction that may write.
type SystemTx struct {
	System
	tx *Tx
}

// System returns the queries of processes, holds and figures of the whole server.
func (s *Snap) System() System { return System{s} }

// System returns the queries of processes, holds and figures of the whole server.
func (t *Tx) System() SystemTx { return SystemTx{System{&t.Snap}, t} }
