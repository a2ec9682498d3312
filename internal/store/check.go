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

// decodeCheck checks a table with the function that scans its rows.
func decodeCheck[T any](table, query string, scan func(scanner) (T, error)) tableCheck {
	return tableCheck{table, query, func(r scanner) error { _, err := scan(r); return err }}
}

// journalCheck checks a table of the journal.
func journalCheck[T any](table, columns string, scan func(scanner) (T, error)) tableCheck {
	return decodeCheck(table, `SELECT `+recordColumns+columns+` FROM `+table, scan)
}

// typeCheck checks a table whose rows need no decoding. The columns of texts must contain text and the columns of
// numbers integers. The first keys columns identify the row.
func typeCheck(table string, keys int, texts, numbers string) tableCheck {
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
			return corruptError(table, strings.Join(text[:keys], "/"), err)
		}
		return nil
	}}
}

// tableChecks contains every table of the schema that Reeve reads.
var tableChecks = []tableCheck{
	decodeCheck("workspaces", `SELECT `+workspaceColumns+` FROM workspaces`, scanWorkspace),
	decodeCheck("access_tokens", `SELECT `+credentialColumns+` FROM access_tokens`, scanCredential),
	typeCheck("access_token_workspaces", 2, `token_id, workspace_id`, ``),
	typeCheck("secrets", 2, `workspace_id, name`, `updated_at`),
	typeCheck("processes", 1, `id`, `heartbeat_at, started_at`),
	decodeCheck("announcements", `SELECT `+batchColumns+` FROM announcements`, scanBatch),
	typeCheck("nodes", 1, `id`, `counter, self, created_at`),
	typeCheck("database_state", 1, `identity, hold_reason`, `id, held_at, as_of`),
	typeCheck("requests", 1, `id, hash, process, claim, workspace_id`, `status, created_at`),

	decodeCheck("tools", `SELECT `+toolColumns+` FROM tools`, scanTool),
	decodeCheck("agents", `SELECT `+agentColumns+` FROM agents`, scanAgent),
	decodeCheck("agent_tools", selectAgentTool, scanAgentTool),
	decodeCheck("profiles", `SELECT kind, capabilities FROM profiles`, scanProfile),
	decodeCheck("agent_states", selectState, scanState),
	typeCheck("agent_runtimes", 1, `agent_id`, `failures, last_run_at`),
	typeCheck("deletions", 2, `kind, id, workspace_id, node, clock`, `counter, removed_at`),

	decodeCheck("calls", `SELECT `+callColumns+` FROM calls`, scanCall),
	decodeCheck("messages", `SELECT `+messageColumns+` FROM messages`, scanMessage),
	typeCheck("events", 1, `id, workspace_id, class, name, agent_id, operation_id`, `created_at`),
	decodeCheck("changes", `SELECT `+changeColumns+` FROM changes`, scanChange),
	typeCheck("payloads", 2, `workspace_id, hash, private_to`, `size, created_at, uses`),
	decodeCheck("approvals", `SELECT `+approvalColumns+` FROM approvals`, scanApproval),
	decodeCheck("proposals", selectProposal, scanProposal),
	decodeCheck("budgets", `SELECT subject, parent, on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis,
		used_calls, used_tokens, used_micros,
		used_millis, 0, 0, 0, 0 FROM budgets`, scanBudget),
	typeCheck("reservations", 3, `workspace_id, subject, call_id, owner`, `calls, tokens, micros, millis`),

	decodeCheck("subscriptions", `SELECT `+subscriptionColumns+` FROM subscriptions`, scanSubscription),
	decodeCheck("timers", `SELECT `+timerColumns+` FROM timers`, scanTimer),
	typeCheck("missed_firings", 1, `timer_id, run_key`, `scheduled_at, created_at`),
	decodeCheck("wakes", `SELECT `+wakeColumns+` FROM wakes`, scanWake),
	decodeCheck("runs", `SELECT `+runColumns+` FROM runs`, scanRun),
	typeCheck("open_runs", 1, `run_id, agent_id, session_id, parent_id, lane`, `turn, seen`),
	decodeCheck("model_requests", `SELECT `+modelRequestColumns+` FROM model_requests`, scanModelRequest),
	typeCheck("model_answers", 2, `run_id, hash, workspace_id, answer`, `created_at`),
	decodeCheck("notifications", `SELECT `+notificationColumns+` FROM notifications`, scanNotification),

	typeCheck("session_files", 3, `workspace_id, session_id, path`, `size, created_at, updated_at`),
	decodeCheck("scratchpads", selectScratchpad, scanScratchpad),
	typeCheck("shells", 2, `workspace_id, thread_id`, `updated_at`),

	decodeCheck("conversations", `SELECT `+conversationColumns+` FROM conversations c`, scanConversation),
	typeCheck("participants", 3, `conversation_id, kind, id, added_by`, `created_at`),
	decodeCheck("frames", selectFrame, scanFrame),
	decodeCheck("attachments", `SELECT `+attachmentColumns+` FROM attachments`, scanAttachment),
	decodeCheck("run_media", selectRunMedia, scanRunMedia),
	typeCheck("feedback", 1, `id, workspace_id, turn_id, user_id, comment`, `score, created_at`),
	decodeCheck("summaries", `SELECT `+summaryColumns+` FROM summaries`, scanSummary),

	decodeCheck("automations", selectAutomation, scanAutomation),
	decodeCheck("scripts", `SELECT `+scriptColumns+` FROM scripts`, scanScript),
	decodeCheck("script_runs", selectScriptRun, scanScriptRun),
	decodeCheck("items", `SELECT `+automationItemColumns+` FROM items`, scanAutomationItem),
	typeCheck("item_attempts", 2, `agent_id, item_id, state, first_run, last_run, script_id, code, message`,
		`attempt, started_at, finished_at`),
	typeCheck("planned_calls", 1, `run_id, workspace_id, item_id, title, tool, args, preview, base, operation_id, depends_on`,
		`ordinal, attempt`),
	typeCheck("automation_failures", 1,
		`agent_id, workspace_id, class, code, message, run_id, root_id, retry_key, script_job_id`,
		`tries, fixes, retry_at, stopped_at, updated_at`),
	decodeCheck("script_jobs", selectScriptJob, scanScriptJob),

	decodeCheck("projects", `SELECT `+projectColumns+` FROM projects`, scanProject),
	decodeCheck("branches", selectBranch, scanBranch),

	journalCheck("categories", categoryColumns, scanCategory),
	journalCheck("labels", labelColumns, scanLabel),
	journalCheck("tasks", taskColumns, scanTask),
	journalCheck("task_labels", taskLabelColumns, scanTaskLabel),
	journalCheck("checklists", checklistColumns, scanChecklist),
	journalCheck("checklist_items", itemColumns, scanItem),
	journalCheck("time_entries", timeColumns, scanTimeEntry),
	journalCheck("day_plans", planColumns, scanPlan),
	journalCheck("plan_blocks", blockColumns, scanBlock),
	journalCheck("plan_pins", pinColumns, scanPin),
	journalCheck("ratings", ratingColumns, scanRating),
	journalCheck("links", linkColumns, scanLink),

	typeCheck("mail_numbers", 1, `name`, `last`),
	decodeCheck("inboxes", `SELECT `+inboxColumns+` FROM inboxes`, scanInbox),
	decodeCheck("emails", `SELECT `+mailColumns+` FROM emails`, scanMail),
	decodeCheck("mail_imports", `SELECT `+importColumns+` FROM mail_imports`, scanImport),
	decodeCheck("notes", `SELECT `+noteColumns+` FROM notes o`, scanNote),
	typeCheck("note_tags", 3, `owner, tag, note_id`, ``),
	typeCheck("note_versions", 1, `note_id, content, tags, origin, agent_id, operation_id`,
		`version, created_at, valid_from`),
	typeCheck("note_tombstones", 1, `id, workspace_id, user_id, operation_id`, `forgotten_at`),
	decodeCheck("note_suggestions", `SELECT `+suggestionColumns+` FROM note_suggestions`, scanSuggestion),
	typeCheck("note_imports", 2, `owner, key, workspace_id, note_id`, ``),
	typeCheck("note_consolidations", 1, `owner, workspace_id, user_id`, `started_at`),
	typeCheck("note_vectors", 1, `note_id, owner, model`, `slot`),
	typeCheck("note_vector_sets", 2, `owner, model, workspace_id, revision`, `vectors`),
	typeCheck("note_vector_blocks", 2, `owner, model`, `block`),
}

// CorruptRows decodes every row of every table and returns the corrupt ones. It reads the whole database, with one
// transaction for each table, and changes nothing.
func (db *DB) CorruptRows(ctx context.Context) (rows []*ErrCorruptRow, err error) {
	for _, c := range tableChecks {
		err := db.View(ctx, func(s *Snap) error {
			_, err := queryAll(ctx, s, func(r scanner) (struct{}, error) {
				err := c.scan(r)
				if row, ok := AsCorruptRow(err); ok {
					rows, err = append(rows, row), nil
				}
				if err != nil {
					return struct{}{}, err
				}
				return struct{}{}, errSkipped // keeps the list of results empty
			}, c.query)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
