package store

import (
	"sync"

	"reeve/internal/notify"
)

// Topic is a kind of data that clients watch for changes.
type Topic string

// The topics.
const (
	TopicApprovals     Topic = "approvals"
	TopicProposals     Topic = "proposals"
	TopicOperations    Topic = "operations"
	TopicRuns          Topic = "runs"
	TopicAgents        Topic = "agents"
	TopicTools         Topic = "tools"
	TopicAutomations   Topic = "automations"
	TopicItems         Topic = "items"
	TopicScriptJobs    Topic = "script_jobs"
	TopicSchedules     Topic = "schedules"
	TopicSubscriptions Topic = "subscriptions"
	TopicConversations Topic = "conversations"
	TopicNotes         Topic = "notes"
	TopicJournal       Topic = "journal"
	TopicMail          Topic = "mail"
	TopicBranches      Topic = "branches"
	TopicBudgets       Topic = "budgets"
	TopicNotifications Topic = "notifications"
	TopicTokens        Topic = "tokens"
	TopicSecrets       Topic = "secrets"
	TopicProfiles      Topic = "profiles"
	TopicControl       Topic = "control"
	TopicInbox         Topic = "inbox" // something that waits for a person has changed
)

// Announcement says that a transaction has changed something. It contains no data, and it may be made although nothing
// has changed.
type Announcement struct {
	Workspace string `json:"w,omitempty"` // empty: any workspace
	Topic     Topic  `json:"t"`
	ID        string `json:"i,omitempty"` // empty: any entry
	Run       string `json:"r,omitempty"` // the run that the entry belongs to
}

// Announce adds an announcement that is delivered if the transaction commits. See [DB.Announced].
func (t *Tx) Announce(workspace string, topic Topic, id, run string) {
	t.announced = append(t.announced, Announcement{workspace, topic, id, run})
}

// announceInbox is Announce for an entry that may wait for a person.
func (t *Tx) announceInbox(workspace string, topic Topic, id, run string) {
	t.Announce(workspace, topic, id, run)
	t.Announce(workspace, TopicInbox, "", "")
}

// announcements collects what committed transactions have announced, until TakeAnnounced takes it.
type announcements struct {
	signal notify.Signal
	mu     sync.Mutex
	set    map[Announcement]struct{}
	list   []Announcement
	lost   bool // there were more than maxAnnouncements
	isOn   bool
}

// maxAnnouncements limits the memory for announcements that have not been taken yet.
const maxAnnouncements = 4096

// add adds the announcements of a transaction.
func (a *announcements) add(list []Announcement) {
	if len(list) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isOn {
		return
	}
	for _, v := range list {
		if _, known := a.set[v]; known {
			continue
		}
		if len(a.list) == maxAnnouncements {
			a.lost = true
			break
		}
		a.set[v] = struct{}{}
		a.list = append(a.list, v)
	}
	a.signal.Notify()
}

// Announced returns a signal that is notified when there are announcements. After the first call, the store collects
// announcements.
func (db *DB) Announced() notify.Signal {
	db.announced.mu.Lock()
	defer db.announced.mu.Unlock()
	db.announced.isOn = true
	return db.announced.signal
}

// TakeAnnounced returns the announcements of the transactions that were committed since the last call, each once. It
// also reports whether there were too many to keep them all.
func (db *DB) TakeAnnounced() (list []Announcement, lost bool) {
	a := &db.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	list, lost = a.list, a.lost
	a.list, a.set, a.lost = nil, map[Announcement]struct{}{}, false
	return list, lost
}
