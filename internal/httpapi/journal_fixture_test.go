package httpapi_test

import (
	"reflect"
	"strings"

	"reeve"
	"reeve/reevetest"
)

// journalFixture has the ids of one journal entry of each kind. A request that deletes or closes an entry has an entry
// of its own.
type journalFixture struct {
	category, spare, label, task, closing, list, target, item, splitting, part, entry, block string
}

// missingJournal has ids that do not exist.
var missingJournal = journalFixture{"cat_none", "cat_none", "label_none", "task_none", "task_none", "list_none",
	"list_other",
	"item_none", "list_none", "item_none", "time_none", "block_none"}

// planDay is the date of the day plan.
const planDay = "2026-02-18"

// createJournalFixture creates one journal entry of each kind in the default workspace.
func createJournalFixture(h *reevetest.Host) (x journalFixture) {
	h.T.Helper()
	create := func(path string, body any) string {
		h.T.Helper()
		var v reeve.Record
		h.Want(201, &v, "POST", "/api/journal/"+path, body)
		return v.ID
	}
	createChecklist := func(task string) (string, string) {
		h.T.Helper()
		var v reeve.Checklist
		h.Want(201, &v, "POST", "/api/journal/checklists", object{"task_id": task, "title": "List",
			"items": []string{"alpha's item"}})
		return v.ID, v.Items[0].ID
	}
	x.category, x.spare = create("categories", object{"name": "alpha's category"}),
		create("categories", object{"name": "alpha's spare"})
	x.label = create("labels", object{"name": "alpha's label"})
	x.task = create("tasks", object{"category_id": x.category, "title": "alpha's task"})
	x.closing = create("tasks", object{"category_id": x.category, "title": "alpha's other task"})
	x.list, x.item = createChecklist(x.task)
	x.splitting, x.part = createChecklist(x.task)
	x.target, _ = createChecklist(x.task)
	x.entry = create("time-entries", object{"task_id": x.task, "started_at": "2026-01-01T10:00:00Z",
		"ended_at": "2026-01-01T11:00:00Z"})
	var plan reeve.DayPlan
	h.Want(200, &plan, "POST", "/api/journal/plans/"+planDay+"/blocks", object{"upserts": []any{x.newBlock()}})
	x.block = plan.Blocks[0].ID
	h.Want(200, nil, "PUT", "/api/journal/ratings", object{"target_kind": "task", "target_id": x.task,
		"scores": object{"focus": 50}})
	return x
}

func (x journalFixture) newBlock() object {
	return object{"category_id": x.category, "start_time": planDay + "T09:00:00Z", "end_time": planDay + "T10:00:00Z"}
}

// mask replaces the ids of the fixture in a text.
func (x journalFixture) mask(s string) string {
	for v, i := reflect.ValueOf(x), 0; i < v.NumField(); i++ {
		s = strings.ReplaceAll(s, v.Field(i).String(), "#")
	}
	return s
}

// samples returns one request for every operation of the journal, by operation id.
func (x journalFixture) samples() map[string]sample {
	const viewer, member, j = reeve.Viewer, reeve.Member, "/api/journal/"
	plan := j + "plans/" + planDay
	return map[string]sample{
		"listCategories": {j + "categories", nil, false, viewer},
		"createCategory": {j + "categories", object{"name": "made"}, false, member},
		"getCategory":    {j + "categories/" + x.category, nil, true, viewer},
		"updateCategory": {j + "categories/" + x.category, object{"name": "renamed"}, true, member},
		"deleteCategory": {j + "categories/" + x.spare, nil, true, member},
		"listLabels":     {j + "labels", nil, false, viewer},
		"createLabel":    {j + "labels", object{"name": "made"}, false, member},
		"updateLabel":    {j + "labels/" + x.label, object{"name": "renamed"}, true, member},
		"deleteLabel":    {j + "labels/" + x.label, nil, true, member},
		"listTasks":      {j + "tasks", nil, false, viewer},
		"createTask":     {j + "tasks", object{"category_id": x.category, "title": "made"}, true, member},
		"getTask":        {j + "tasks/" + x.task, nil, true, viewer},
		"updateTask":     {j + "tasks/" + x.task, object{"title": "renamed"}, true, member},
		"deleteTask":     {j + "tasks/" + x.task, nil, true, member},
		"updateTaskLabels": {j + "tasks/" + x.task + "/labels", object{"add_label_ids": []string{x.label}}, true,
			member},
		"findTaskCandidates": {j + "task-candidates", nil, false, viewer},
		"createFollowUp": {j + "follow-ups", object{"source_task_id": x.closing, "new_task_title": "next"}, true,
			member},
		"concludeTask":    {j + "rollovers", object{"task_id": x.closing}, true, member},
		"listChecklists":  {j + "tasks/" + x.task + "/checklists", nil, true, viewer},
		"createChecklist": {j + "checklists", object{"task_id": x.task, "title": "made"}, true, member},
		"getChecklist":    {j + "checklists/" + x.list, nil, true, viewer},
		"updateChecklist": {j + "checklists/" + x.list, object{"title": "renamed"}, true, member},
		"deleteChecklist": {j + "checklists/" + x.list, nil, true, member},
		"addChecklistItems": {j + "checklists/" + x.target + "/items", object{"items": []any{object{"title": "made"}}},
			true, member},
		"updateChecklistItems": {j + "checklists/" + x.list + "/items",
			object{"items": []any{object{"id": x.item, "checked": true}}}, true, member},
		"deleteChecklistItem": {j + "checklists/" + x.list + "/items/" + x.item, nil, true, member},
		"moveChecklistItems": {j + "item-moves", object{"item_ids": []string{x.item}, "from_checklist_id": x.list,
			"to_checklist_id": x.target}, true, member},
		"splitChecklistItems": {j + "item-splits", object{"item_ids": []string{x.part},
			"from_checklist_id": x.splitting,
			"new_task_title":    "own"}, true, member},
		"listTimeEntries": {j + "time-entries", nil, false, viewer},
		"createTimeEntry": {j + "time-entries", object{"task_id": x.task, "started_at": "2026-01-02T10:00:00Z",
			"ended_at": "2026-01-02T11:00:00Z"}, true, member},
		"getTimeEntry":      {j + "time-entries/" + x.entry, nil, true, viewer},
		"updateTimeEntry":   {j + "time-entries/" + x.entry, object{"ended_at": "2026-01-01T10:30:00Z"}, true, member},
		"deleteTimeEntry":   {j + "time-entries/" + x.entry, nil, true, member},
		"startTimer":        {j + "timers", object{"task_id": x.task}, true, member},
		"stopTimer":         {j + "timers/stop", object{"time_entry_id": x.entry}, true, member},
		"getDayPlan":        {plan, nil, false, viewer},
		"updatePlanBlocks":  {plan + "/blocks", object{"upserts": []any{x.newBlock()}}, true, member},
		"replacePlanBlocks": {plan + "/blocks", object{"blocks": []any{x.newBlock()}}, true, member},
		"updatePlanPins":    {plan + "/pins", object{"task_ids": []string{x.task}}, true, member},
		"listRatings":       {j + "ratings", nil, false, viewer},
		"summarizeRatings":  {j + "rating-summary", nil, false, viewer},
		"putRating": {j + "ratings", object{"target_kind": "task", "target_id": x.task,
			"scores": object{"focus": 60}}, true, member},
		"getRating":    {j + "ratings/task/" + x.task, nil, true, viewer},
		"deleteRating": {j + "ratings/task/" + x.task, nil, true, member},
	}
}
