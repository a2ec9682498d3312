package client

// The services of the API, each with the methods of one resource.

type (
	// AgentService gives access to agents, their tools, state and threads.
	AgentService struct{ conn *conn }
	// ApprovalService gives access to approvals and the inbox.
	ApprovalService struct{ conn *conn }
	// AutomationService gives access to automations, their versions, runs, items and files.
	AutomationService struct{ conn *conn }
	// BranchService gives access to the git branches of conversations.
	BranchService struct{ conn *conn }
	// BudgetService gives access to budgets.
	BudgetService struct{ conn *conn }
	// CallService gives access to tool calls, their explanations and stored outputs.
	CallService struct{ conn *conn }
	// CategoryService gives access to the categories of the journal.
	CategoryService struct{ conn *conn }
	// ChangeSetService gives access to change sets.
	ChangeSetService struct{ conn *conn }
	// ChecklistService gives access to the checklists of the journal.
	ChecklistService struct{ conn *conn }
	// ControlService gives access to the kill switch and the hold of a server.
	ControlService struct{ conn *conn }
	// ConversationService gives access to conversations.
	ConversationService struct{ conn *conn }
	// DayPlanService gives access to the day plans of the journal.
	DayPlanService struct{ conn *conn }
	// ScriptJobService gives access to the jobs of the planner and the maintainer of scripts.
	ScriptJobService struct{ conn *conn }
	// LabelService gives access to the labels of the journal.
	LabelService struct{ conn *conn }
	// MailService gives access to imported mail.
	MailService struct{ conn *conn }
	// NoteService gives access to a user's notes.
	NoteService struct{ conn *conn }
	// NotificationService gives access to a user's notifications.
	NotificationService struct{ conn *conn }
	// OperationService gives access to operations.
	OperationService struct{ conn *conn }
	// ProfileService gives access to capability profiles.
	ProfileService struct{ conn *conn }
	// ProjectService gives access to projects.
	ProjectService struct{ conn *conn }
	// ProposalService gives access to proposals.
	ProposalService struct{ conn *conn }
	// RatingService gives access to the ratings of the journal.
	RatingService struct{ conn *conn }
	// RunService gives access to runs.
	RunService struct{ conn *conn }
	// ScheduleService gives access to schedules.
	ScheduleService struct{ conn *conn }
	// SecretService gives access to secrets.
	SecretService struct{ conn *conn }
	// ServerService gives access to the server: its status, health, contract and backups.
	ServerService struct{ conn *conn }
	// SubscriptionService gives access to the subscriptions of agents.
	SubscriptionService struct{ conn *conn }
	// TaskService gives access to the tasks of the journal.
	TaskService struct{ conn *conn }
	// TimeEntryService gives access to the time entries and timers of the journal.
	TimeEntryService struct{ conn *conn }
	// TokenService gives access to bearer tokens.
	TokenService struct{ conn *conn }
	// ToolService gives access to the tool catalogue.
	ToolService struct{ conn *conn }
	// TurnService gives access to the turns of conversations.
	TurnService struct{ conn *conn }
	// WakeService gives access to wakes.
	WakeService struct{ conn *conn }
	// WorkspaceService gives access to workspaces.
	WorkspaceService struct{ conn *conn }
)

// Agents gives access to agents, their tools, state and threads.
func (c *Client) Agents() AgentService { return AgentService{c.conn} }

// Approvals gives access to approvals and the inbox.
func (c *Client) Approvals() ApprovalService { return ApprovalService{c.conn} }

// Automations gives access to automations, their versions, runs, items and files.
func (c *Client) Automations() AutomationService { return AutomationService{c.conn} }

// Branches gives access to the git branches of conversations.
func (c *Client) Branches() BranchService { return BranchService{c.conn} }

// Budgets gives access to budgets.
func (c *Client) Budgets() BudgetService { return BudgetService{c.conn} }

// Calls gives access to tool calls, their explanations and stored outputs.
func (c *Client) Calls() CallService { return CallService{c.conn} }

// Categories gives access to the categories of the journal.
func (c *Client) Categories() CategoryService { return CategoryService{c.conn} }

// ChangeSets gives access to change sets.
func (c *Client) ChangeSets() ChangeSetService { return ChangeSetService{c.conn} }

// Checklists gives access to the checklists of the journal.
func (c *Client) Checklists() ChecklistService { return ChecklistService{c.conn} }

// Control gives access to the kill switch and the hold of a server.
func (c *Client) Control() ControlService { return ControlService{c.conn} }

// Conversations gives access to conversations.
func (c *Client) Conversations() ConversationService { return ConversationService{c.conn} }

// DayPlans gives access to the day plans of the journal.
func (c *Client) DayPlans() DayPlanService { return DayPlanService{c.conn} }

// ScriptJobs gives access to the jobs of the planner and the maintainer of scripts.
func (c *Client) ScriptJobs() ScriptJobService { return ScriptJobService{c.conn} }

// Labels gives access to the labels of the journal.
func (c *Client) Labels() LabelService { return LabelService{c.conn} }

// Mail gives access to imported mail.
func (c *Client) Mail() MailService { return MailService{c.conn} }

// Notes gives access to a user's notes.
func (c *Client) Notes() NoteService { return NoteService{c.conn} }

// Notifications gives access to a user's notifications.
func (c *Client) Notifications() NotificationService { return NotificationService{c.conn} }

// Operations gives access to operations.
func (c *Client) Operations() OperationService { return OperationService{c.conn} }

// Profiles gives access to capability profiles.
func (c *Client) Profiles() ProfileService { return ProfileService{c.conn} }

// Projects gives access to projects.
func (c *Client) Projects() ProjectService { return ProjectService{c.conn} }

// Proposals gives access to proposals.
func (c *Client) Proposals() ProposalService { return ProposalService{c.conn} }

// Ratings gives access to the ratings of the journal.
func (c *Client) Ratings() RatingService { return RatingService{c.conn} }

// Runs gives access to runs.
func (c *Client) Runs() RunService { return RunService{c.conn} }

// Schedules gives access to schedules.
func (c *Client) Schedules() ScheduleService { return ScheduleService{c.conn} }

// Secrets gives access to secrets.
func (c *Client) Secrets() SecretService { return SecretService{c.conn} }

// Server gives access to the server: its status, health, contract and backups.
func (c *Client) Server() ServerService { return ServerService{c.conn} }

// Subscriptions gives access to the subscriptions of agents.
func (c *Client) Subscriptions() SubscriptionService { return SubscriptionService{c.conn} }

// Tasks gives access to the tasks of the journal.
func (c *Client) Tasks() TaskService { return TaskService{c.conn} }

// TimeEntries gives access to the time entries and timers of the journal.
func (c *Client) TimeEntries() TimeEntryService { return TimeEntryService{c.conn} }

// Tokens gives access to bearer tokens.
func (c *Client) Tokens() TokenService { return TokenService{c.conn} }

// Tools gives access to the tool catalogue.
func (c *Client) Tools() ToolService { return ToolService{c.conn} }

// Turns gives access to the turns of conversations.
func (c *Client) Turns() TurnService { return TurnService{c.conn} }

// Wakes gives access to wakes.
func (c *Client) Wakes() WakeService { return WakeService{c.conn} }

// Workspaces gives access to workspaces.
func (c *Client) Workspaces() WorkspaceService { return WorkspaceService{c.conn} }
