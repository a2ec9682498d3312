package reeve

// Semantic keys of agents and schedules that subscriptions can name.
const (
	KeyAgent         = "AGENT"
	KeyAgentMessage  = "AGENT_MESSAGE"
	KeySchedule      = "SCHEDULE"
	KeyScheduleFired = "SCHEDULE_FIRED"
	KeyScheduleEnded = "SCHEDULE_ENDED"
)

// watchTokens returns a key, a subtype and an id.
func watchTokens(key, subtype, id string) []Token {
	return []Token{{Class: SemanticKey, Name: key}, {Class: Subtype, Name: subtype}, {Class: EntityID, Name: id}}
}

// ChangeTokens returns the tokens that a change of the agent emits.
func (a Agent) ChangeTokens(action ChangeAction) []Token {
	subtype := "agent." + string(action)
	if action == EntityDeleted || a.Lifecycle == AgentDestroyed {
		subtype = "agent.destroyed"
	}
	return watchTokens(KeyAgent, subtype, a.ID)
}

// AgentMessageTokens returns the tokens that the final answer of a run emits.
func AgentMessageTokens(run Run) []Token {
	return watchTokens(KeyAgentMessage, "agent_message."+string(run.Reason), run.AgentID)
}

// ScheduleFiredTokens returns the tokens that the firing of a schedule emits. The reason is timer or catch-up.
func ScheduleFiredTokens(id string, reason Reason) []Token {
	return watchTokens(KeyScheduleFired, "schedule_fired."+string(reason), id)
}

// ScheduleEndedTokens returns the tokens that the end of a scheduled run emits.
func ScheduleEndedTokens(id string, state RunState) []Token {
	return watchTokens(KeyScheduleEnded, "schedule_ended."+string(state), id)
}

// WatchSubtypes returns the subtypes that agents and schedules emit.
func WatchSubtypes() []string {
	list := []string{"agent.created", "agent.changed", "agent.destroyed"}
	for _, r := range []Reason{ReasonUser, ReasonManual, ReasonSubscription, ReasonTimer, ReasonCatchup, ReasonRetry,
		ReasonScriptJob} {
		list = append(list, "agent_message."+string(r))
	}
	list = append(list, "schedule_fired."+string(ReasonTimer), "schedule_fired."+string(ReasonCatchup))
	for _, s := range []RunState{RunCompleted, RunFailed, RunCancelled, RunSkipped, RunPaused} {
		list = append(list, "schedule_ended."+string(s))
	}
	return list
}

// IsJournalKey reports whether changes with a semantic key have entities that predicates see.
func IsJournalKey(key string) bool {
	switch key {
	case KeyTask, KeyCategory, KeyLabel, KeyChecklist, KeyTimeEntry, KeyDayPlan, KeyRating:
		return true
	}
	return false
}
