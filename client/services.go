package client

// The services of the API, each with the methods of one resource.

type (
	// AgentService provides access to agents, their tools, state and threads.
	AgentService struct{ conn *conn }
	// ApprovalService provides access to approvals and the inbox.
	ApprovalService struct{ conn *conn }
	// AutomationService provides access to automations, their versions, runs, items and files.
	AutomationService struct{ conn *conn }
	// BranchService provides access to the git branches of conversations.
	BranchService struct{ conn *conn }
	// BudgetService provides access to budgets.
	BudgetService struct{ conn *conn }
	// CallService provides access to tool calls, their explanations and stored outputs.
	CallService struct{ conn *conn }
	// CategoryService provides access to the categories of the journal.
	CategoryService struct{ conn *conn }
	// ChangeService provides access to the records of changes.
	ChangeService struct{ conn *conn }
	// ChangeSetService provides access to change sets.
	ChangeSetService struct{ conn *conn }
	// ChecklistService provides access to the checklists of the journal.
	ChecklistService struct{ conn *conn }
	// ControlService provides access to the kill switch and the hold of a server.
	ControlService struct{ conn *conn }
	// ConversationService provides access to conversations.
	ConversationService struct{ conn *conn }
	// DayPlanService provides access to the day plans of the journal.
	DayPlanService struct{ conn *conn }
	// ScriptJobService provides access to the jobs of the planner and the maintainer of scripts.
	ScriptJobService struct{ conn *conn }
	// LabelService provides access to the labels of the journal.
	LabelService struct{ conn *conn }
	// MailService provides access to imported mail.
	MailService struct{ conn *conn }
	// NoteService provides access to a user's notes.
	NoteService struct{ conn *conn }
	// NotificationService provides access to a user's notifications.
	NotificationService struct{ conn *conn }
	// OperationService provides access to operations.
	OperationService struct{ conn *conn }
	// ProfileService provides access to capability profiles.
	ProfileService struct{ conn *conn }
	// ProjectService provides access to projects.
	ProjectService struct{ conn *conn }
	// ProposalService provides access to proposals.
	ProposalService struct{ conn *conn }
	// RatingService provides access to the ratings of the journal.
	RatingService struct{ conn *conn }
	// RunService provides access to runs.
	RunService struct{ conn *conn }
	// ScheduleService provides access to schedules.
	ScheduleService struct{ conn *conn }
	// SecretService provides access to secrets.
	SecretService struct{ conn *conn }
	// ServerService provides access to the server: its status, health, contract and backups.
	ServerService struct{ conn *conn }
	// SubscriptionService provides access to the subscriptions of agents.
	SubscriptionService struct{ conn *conn }
	// TaskService provides access to the tasks of the journal.
	TaskService struct{ conn *conn }
	// TimeEntryService provides access to the time entries and timers of the journal.
	TimeEntryService struct{ conn *conn }
	// TokenService provides access to bearer tokens.
	TokenService struct{ conn *conn }
	// ToolService provides access to the tool catalogue.
	ToolService struct{ conn *conn }
	// TurnService provides access to the turns of conversations.
	TurnService struct{ conn *conn }
	// WakeService provides access to wakes.
	WakeService struct{ conn *conn }
	// WorkspaceService provides access to workspaces.
	WorkspaceService struct{ conn *conn }
)

// Agents returns the service for agents, their tools, state and threads.
func (c *Client) Agents() AgentService { return AgentService{c.conn} }

// Approvals returns the service for approvals and the inbox.
func (c *Client) Approvals() ApprovalService { return ApprovalService{c.conn} }

// Automations returns the service for automations, their versions, runs, items and files.
func (c *Client) Automations() AutomationService { return AutomationService{c.conn} }

// Branches returns the service for the git branches of conversations.
func (c *Client) Branches() BranchService { return BranchService{c.conn} }

// Budgets returns the service for budgets.
func (c *Client) Budgets() BudgetService { return BudgetService{c.conn} }

// Calls returns the service for tool calls, their explanations and stored outputs.
func (c *Client) Calls() CallService { return CallService{c.conn} }

// Categories returns the service for the categories of the journal.
func (c *Client) Categories() CategoryService { return CategoryService{c.conn} }

// Changes returns the service for the records of changes.
func (c *Client) Changes() ChangeService { return ChangeService{c.conn} }

// ChangeSets returns the service for change sets.
func (c *Client) ChangeSets() ChangeSetService { return ChangeSetService{c.conn} }

// Checklists returns the service for the checklists of the journal.
func (c *Client) Checklists() ChecklistService { return ChecklistService{c.conn} }

// Control returns the service for the kill switch and the hold of a server.
func (c *Client) Control() ControlService { return ControlService{c.conn} }

// Conversations returns the service for conversations.
func (c *Client) Conversations() ConversationService { return ConversationService{c.conn} }

// DayPlans returns the service for the day plans of the journal.
func (c *Client) DayPlans() DayPlanService { return DayPlanService{c.conn} }

// ScriptJobs returns the service for the jobs of the planner and the maintainer of scripts.
func (c *Client) ScriptJobs() ScriptJobService { return ScriptJobService{c.conn} }

// Labels returns the service for the labels of the journal.
func (c *Client) Labels() LabelService { return LabelService{c.conn} }

// Mail returns the service for imported mail.
func (c *Client) Mail() MailService { return MailService{c.conn} }

// Notes returns the service for a user's notes.
func (c *Client) Notes() NoteService { return NoteService{c.conn} }

// Notifications returns the service for a user's notifications.
func (c *Client) Notifications() NotificationService { return NotificationService{c.conn} }

// Operations returns the service for operations.
func (c *Client) Operations() OperationService { return OperationService{c.conn} }

// Profiles returns the service for capability profiles.
func (c *Client) Profiles() ProfileService { return ProfileService{c.conn} }

// Projects returns the service for projects.
func (c *Client) Projects() ProjectService { return ProjectService{c.conn} }

// Proposals returns the service for proposals.
func (c *Client) Proposals() ProposalService { return ProposalService{c.conn} }

// Ratings returns the service for the ratings of the journal.
func (c *Client) Ratings() RatingService { return RatingService{c.conn} }

// Runs returns the service for runs.
func (c *Client) Runs() RunService { return RunService{c.conn} }

// Schedules returns the service for schedules.
func (c *Client) Schedules() ScheduleService { return ScheduleService{c.conn} }

// Secrets returns the service for secrets.
func (c *Client) Secrets() SecretService { return SecretService{c.conn} }

// Server returns the service for the status, health, contract and backups of the server.
func (c *Client) Server() ServerService { return ServerService{c.conn} }

// Subscriptions returns the service for the subscriptions of agents.
func (c *Client) Subscriptions() SubscriptionService { return SubscriptionService{c.conn} }

// Tasks returns the service for the tasks of the journal.
func (c *Client) Tasks() TaskService { return TaskService{c.conn} }

// TimeEntries returns the service for the time entries and timers of the journal.
func (c *Client) TimeEntries() TimeEntryService { return TimeEntryService{c.conn} }

// Tokens returns the service for bearer tokens.
func (c *Client) Tokens() TokenService { return TokenService{c.conn} }

// Tools returns the service for the tool catalogue.
func (c *Client) Tools() ToolService { return ToolService{c.conn} }

// Turns returns the service for the turns of conversations.
func (c *Client) Turns() TurnService { return TurnService{c.conn} }

// Wakes returns the service for wakes.
func (c *Client) Wakes() WakeService { return WakeService{c.conn} }

// Workspaces returns the service for workspaces.
func (c *Client) Workspaces() WorkspaceService { return WorkspaceService{c.conn} }
