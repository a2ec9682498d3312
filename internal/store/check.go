package store

import (
	"context"
	"strings"
)

// tableCheck decodes every row of a table.
type tableCheck struct {
	table string
	query string
	scan  func(scanner) error
}

// decoded checks a table with the scan function that its rows are read by.
func decoded[T any](table, query string, scan func(scanner) (T, error)) tableCheck {
	return tableCheck{table, query, func(r scanner) error { _, err := scan(r); return err }}
}

// recorded checks a table of the journal.
func recorded[T any](table, columns string, scan func(scanner) (T, error)) tableCheck {
	return decoded(table, `SELECT `+recordColumns+columns+` FROM `+table, scan)
}

// typed checks a table whose rows need no decoding: text must be in the columns of texts, of which the first keys
// identify the row, and whole numbers must be in the columns of numbers.
func typed(table string, keys int, texts, numbers string) tableCheck {
	columns := strings.Split(texts, ", ")
	counted := 0
	query := `SELECT ` + texts
	if numbers != "" {
		counted, query = len(strings.Split(numbers, ", ")), query+`, `+numbers
	}
	return tableCheck{table, query + ` FROM ` + table, func(r scanner) error {
		text, number := make([]string, len(columns)), make([]int64, counted)
		dest := make([]any, 0, len(text)+len(number))
		for i := range text {
			dest = append(dest, &text[i])
		}
		for i := range number {
			dest = append(dest, &number[i])
		}
		if err := r.Scan(dest...); err != nil {
			return corrupt(table, strings.Join(text[:keys], "/"), err)
		}
		return nil
	}}
}

// tableChecks has every table that Reeve reads.
var tableChecks = []tableCheck{
	decoded("workspaces", `SELECT `+workspaceColumns+` FROM workspaces`, scanWorkspace),
	decoded("access_tokens", `SELECT `+credentialColumns+` FROM access_tokens`, scanCredential),
	typed("access_token_workspaces", 2, `token_id, workspace_id`, ``),
	typed("secrets", 2, `workspace_id, name`, `updated_at`),
	typed("processes", 1, `id`, `heartbeat_at, started_at`),
	typed("nodes", 1, `id`, `counter, self, created_at`),
	typed("database_state", 1, `identity, hold_reason`, `id, held_at, as_of`),
	typed("requests", 1, `id, hash, process, claim`, `status, created_at`),

	decoded("tools", `SELECT `+toolColumns+` FROM tools`, scanTool),
	decoded("agents", `SELECT `+agentColumns+` FROM agents`, scanAgent),
	decoded("agent_tools", selectAgentTool, scanAgentTool),
	decoded("profiles", `SELECT kind, capabilities FROM profiles`, scanProfile),
	decoded("agent_states", selectState, scanState),
	typed("agent_runtimes", 1, `agent_id`, `failures, last_run_at`),
	typed("removals", 2, `kind, id, workspace_id, node, clock`, `counter, removed_at`),

	decoded("calls", `SELECT `+callColumns+` FROM calls`, scanCall),
	decoded("messages", `SELECT `+messageColumns+` FROM messages`, scanMessage),
	typed("events", 1, `id, workspace_id, class, name, agent_id, operation_id`, `created_at`),
	typed("payloads", 2, `workspace_id, hash`, `size, created_at, uses`),
	decoded("approvals", `SELECT `+approvalColumns+` FROM approvals`, scanApproval),
	decoded("proposals", selectProposal, scanProposal),
	decoded("budgets", `SELECT subject, parent, on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis, used_calls, used_tokens, used_micros,
		used_millis, 0, 0, 0, 0 FROM budgets`, scanBudget),
	typed("reservations", 3, `workspace_id, subject, call_id, owner`, `calls, tokens, micros, millis`),

	decoded("subscriptions", `SELECT `+subscriptionColumns+` FROM subscriptions`, scanSubscription),
	decoded("timers", `SELECT `+timerColumns+` FROM timers`, scanTimer),
	typed("missed", 1, `timer_id, run_key`, `scheduled_at, created_at`),
	decoded("wakes", `SELECT `+wakeColumns+` FROM wakes`, scanWake),
	decoded("runs", `SELECT `+runColumns+` FROM runs`, scanRun),
	typed("open_runs", 1, `run_id, agent_id, session_id, parent_id, lane`, `turn, seen`),
	decoded("notifications", `SELECT `+notificationColumns+` FROM notifications`, scanNotification),

	typed("session_files", 3, `workspace_id, session_id, path`, `size, created_at, updated_at`),
	decoded("scratchpads", selectScratchpad, scanScratchpad),
	typed("shells", 2, `workspace_id, thread_id`, `updated_at`),

	decoded("conversations", `SELECT `+conversationColumns+` FROM conversations c`, scanConversation),
	typed("participants", 3, `conversation_id, kind, id, added_by`, `created_at`),
	decoded("frames", selectFrame, scanFrame),
	typed("feedback", 1, `id, workspace_id, turn_id, user_id, comment`, `score, created_at`),
	decoded("summaries", `SELECT `+summaryColumns+` FROM summaries`, scanSummary),

	decoded("automations", selectAutomation, scanAutomation),
	decoded("scripts", `SELECT `+scriptColumns+` FROM scripts`, scanScript),
	decoded("script_runs", selectScriptRun, scanScriptRun),
	decoded("items", `SELECT `+ledgerColumns+` FROM items`, scanLedger),
	typed("item_attempts", 2, `agent_id, item_id, state, first_run, last_run, script_id, code, message`,
		`attempt, started_at, finished_at`),
	typed("planned_calls", 1, `run_id, workspace_id, item_id, title, tool, args, preview, base, operation_id`,
		`ordinal, attempt`),
	typed("automation_failures", 1,
		`agent_id, workspace_id, class, code, message, run_id, root_id, retry_key, script_job_id`,
		`tries, fixes, retry_at, stopped_at, updated_at`),
	decoded("script_jobs", selectScriptJob, scanScriptJob),

	decoded("projects", `SELECT `+projectColumns+` FROM projects`, scanProject),
	decoded("branches", selectBranch, scanBranch),

	recorded("categories", categoryColumns, scanCategory),
	recorded("labels", labelColumns, scanLabel),
	recorded("tasks", taskColumns, scanTask),
	recorded("task_labels", taskLabelColumns, scanTaskLabel),
	recorded("checklists", checklistColumns, scanChecklist),
	recorded("checklist_items", itemColumns, scanItem),
	recorded("time_entries", timeColumns, scanTimeEntry),
	recorded("day_plans", planColumns, scanPlan),
	recorded("plan_blocks", blockColumns, scanBlock),
	recorded("plan_pins", pinColumns, scanPin),
	recorded("ratings", ratingColumns, scanRating),
	recorded("links", linkColumns, scanLink),

	typed("mail_numbers", 1, `name`, `last`),
	decoded("inboxes", `SELECT `+inboxColumns+` FROM inboxes`, scanInbox),
	decoded("emails", `SELECT `+mailColumns+` FROM emails`, scanMail),
	decoded("mail_imports", `SELECT `+importColumns+` FROM mail_imports`, scanImport),
	decoded("notes", `SELECT `+noteColumns+` FROM notes o`, scanNote),
}

// CorruptRows decodes every row of every table, and returns those that cannot be. It reads the whole database, one
// table in each transaction, and changes nothing.
func (db *DB) CorruptRows(ctx context.Context) (rows []*ErrCorruptRow, err error) {
	for _, c := range tableChecks {
		err := db.View(ctx, func(s *Snap) error {
			_, err := all(ctx, s, func(r scanner) (struct{}, error) {
				err := c.scan(r)
				if row, ok := AsCorruptRow(err); ok {
					rows, err = append(rows, row), nil
				}
				if err != nil {
					return struct{}{}, err
				}
				return struct{}{}, errSkipped // so that no list of the whole table is made
			}, c.query)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
