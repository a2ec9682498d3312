package automation

import "reeve"

// scriptItem is an item as scripts see it. Some fields have a second name, so that scripts written for either work.
type scriptItem struct {
	reeve.Item
	LogicalItemID  string          `json:"logical_item_id"`
	Status         reeve.ItemState `json:"status"`
	CurrentAttempt int             `json:"current_attempt_id"`
	WorkflowID     string          `json:"workflow_id"`
	CreatedByRun   string          `json:"created_by_run_id"`
	LastRunID      string          `json:"last_run_id"`
	CreatedAt      int64           `json:"created_at"` // milliseconds since 1970, as in new Date(n)
	UpdatedAt      int64           `json:"updated_at"`
}

// scriptItems is the result of Items.list.
type scriptItems struct {
	Items   []scriptItem `json:"items"`
	Total   int          `json:"total"`
	HasMore bool         `json:"has_more"`
}

func newScriptItems(l reeve.ItemList) scriptItems {
	out := scriptItems{Items: make([]scriptItem, len(l.Items)), Total: l.Total, HasMore: l.HasMore}
	for i, v := range l.Items {
		out.Items[i] = scriptItem{Item: v, LogicalItemID: v.ID, Status: v.State, CurrentAttempt: v.Attempt,
			WorkflowID: v.AgentID, CreatedByRun: v.FirstRun, LastRunID: v.LastRun,
			CreatedAt: reeve.Millis(v.CreatedAt), UpdatedAt: reeve.Millis(v.UpdatedAt)}
	}
	return out
}
