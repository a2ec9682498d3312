package agentstate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"reeve"
)

type updateArgs struct {
	PrimaryGoal       *string                    `json:"primary_goal,omitempty" maxLength:"8000" doc:"New goal. Empty to remove it"`
	ActiveTaskID      *string                    `json:"active_task_id,omitempty" maxLength:"64" doc:"Id of the task that you work on. Empty to remove it"`
	AddOpenLoops      []string                   `json:"add_open_loop_ids,omitempty" maxItems:"100" doc:"Ids of things to return to, such as tasks"`
	RemoveOpenLoops   []string                   `json:"remove_open_loop_ids,omitempty" maxItems:"1000"`
	SetPreferences    map[string]string          `json:"set_preferences,omitempty" doc:"Preferences by key, such as tone"`
	RemovePreferences []string                   `json:"remove_preferences,omitempty" maxItems:"100" doc:"Keys"`
	SetExtension      map[string]json.RawMessage `json:"set_extension,omitempty" doc:"Objects with other data, by namespace such as org.example.gym. Each replaces the object of its namespace"`
	RemoveExtension   []string                   `json:"remove_extension,omitempty" maxItems:"100" doc:"Namespaces"`
	reeve.UndoGuard
}

func (p *Pack) update(ctx context.Context, in updateArgs) (state, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, a, was, err := current(ctx, inv)
	if err != nil {
		return state{}, err
	}
	if err := in.Check(in.affected(was.Slots)); err != nil {
		return state{}, err
	}
	slots := in.apply(was.Slots)
	if err := slots.Validate(); err != nil {
		return state{}, err
	}
	is, changed, err := tx.Agents().PutSlots(ctx, a, was.Revision, slots)
	if err != nil {
		return state{}, err
	}
	if !changed {
		return newState(is, "Nothing was changed."), nil
	}
	emit(inv)
	undo := inverse(was.Slots, slots)
	undo.UndoGuard = reeve.NewUndoGuard(undo.affected(slots))
	inv.UndoWith("agent_state_update", undo)
	return newState(is, "The state was changed."), nil
}

// apply returns slots with the changes of the arguments.
func (in updateArgs) apply(s reeve.AgentSlots) reeve.AgentSlots {
	if in.PrimaryGoal != nil {
		s.PrimaryGoal = *in.PrimaryGoal
	}
	if in.ActiveTaskID != nil {
		s.ActiveTaskID = *in.ActiveTaskID
	}
	loops := slices.DeleteFunc(slices.Clone(s.OpenLoopIDs),
		func(id string) bool { return slices.Contains(in.RemoveOpenLoops, id) })
	for _, id := range in.AddOpenLoops {
		if !slices.Contains(loops, id) {
			loops = append(loops, id)
		}
	}
	s.OpenLoopIDs = loops
	preferences := map[string]string{}
	maps.Copy(preferences, s.Preferences)
	for _, k := range in.RemovePreferences {
		delete(preferences, k)
	}
	maps.Copy(preferences, in.SetPreferences)
	s.Preferences = preferences
	extension := map[string]json.RawMessage{}
	maps.Copy(extension, s.Extension)
	for _, k := range in.RemoveExtension {
		delete(extension, k)
	}
	maps.Copy(extension, in.SetExtension)
	s.Extension = extension
	return s
}

// affected returns the values of the slots that the arguments change.
func (in updateArgs) affected(s reeve.AgentSlots) any {
	out := map[string]any{}
	if in.PrimaryGoal != nil {
		out["primary_goal"] = s.PrimaryGoal
	}
	if in.ActiveTaskID != nil {
		out["active_task_id"] = s.ActiveTaskID
	}
	if len(in.AddOpenLoops)+len(in.RemoveOpenLoops) > 0 {
		out["open_loop_ids"] = s.OpenLoopIDs
	}
	for _, k := range slices.Concat(slices.Sorted(maps.Keys(in.SetPreferences)), in.RemovePreferences) {
		v, ok := s.Preferences[k]
		out["preferences/"+k] = []any{v, ok}
	}
	for _, k := range slices.Concat(slices.Sorted(maps.Keys(in.SetExtension)), in.RemoveExtension) {
		v, ok := s.Extension[k]
		out["extension/"+k] = []any{v, ok}
	}
	return out
}

// inverse returns the arguments that restore the slots to their values before a call.
func inverse(before, after reeve.AgentSlots) updateArgs {
	var in updateArgs
	if before.PrimaryGoal != after.PrimaryGoal {
		in.PrimaryGoal = &before.PrimaryGoal
	}
	if before.ActiveTaskID != after.ActiveTaskID {
		in.ActiveTaskID = &before.ActiveTaskID
	}
	missing := func(from, in []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(id string) bool { return slices.Contains(in, id) })
	}
	in.AddOpenLoops = missing(before.OpenLoopIDs, after.OpenLoopIDs)
	in.RemoveOpenLoops = missing(after.OpenLoopIDs, before.OpenLoopIDs)
	in.SetPreferences, in.RemovePreferences = restoring(before.Preferences, after.Preferences)
	in.SetExtension, in.RemoveExtension = restoring(before.Extension, after.Extension)
	return in
}

// restoring returns the entries to set and the keys to remove, so that after becomes before.
func restoring[V ~string | ~[]byte](before, after map[string]V) (set map[string]V, remove []string) {
	for k, v := range before {
		if now, ok := after[k]; !ok || string(now) != string(v) {
			if set == nil {
				set = map[string]V{}
			}
			set[k] = v
		}
	}
	for _, k := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[k]; !ok {
			remove = append(remove, k)
		}
	}
	return set, remove
}
