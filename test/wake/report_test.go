package wake_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// planReport has bot make a schedule in a conversation. The schedule sends a file and reports.
const planReport = `- {when: {tool: schedule_create}, text: Planned.}
- {when: {said: plan}, calls: [{name: schedule_create, args: {name: morning, goal: send the picture, cadence_type: interval,
    cadence_value: 1h, notification: %POLICY%}}]}
- {when: {tool: send_media}, text: Here it is.}
- {when: {said: picture}, calls: [{name: send_media, args: {path: /shared/chart.txt, caption: The chart}}]}
`

// runReport runs a host on both databases with an agent that makes a schedule in a conversation and then runs it.
func runReport(t *testing.T, policy string, f func(t *testing.T, h *reevetest.Host)) {
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, "answers:\n"+strings.ReplaceAll(planReport, "%POLICY%", policy))
		h := reevetest.Run(t, cfg)
		h.Agent("bot", "schedule_create", "send_media", "file_write")
		h.Call("bot", "file_write", kit.Call{"path": "/shared/chart.txt", "content": "up"})
		f(t, h)
	})
}

// fireSoon makes the only schedule fire once, at once.
func fireSoon(h *reevetest.Host) {
	h.T.Helper()
	var l api.ScheduleList
	h.Want(http.StatusOK, &l, "GET", "/api/schedules", nil)
	if len(l.Schedules) != 1 {
		h.T.Fatalf("the schedules are %+v", l.Schedules)
	}
	h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+l.Schedules[0].ID, kit.Object{"cadence_type": "once",
		"cadence_value": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
}

func listReports(h *reevetest.Host, conversation string) (list []reeve.Frame) {
	for _, f := range kit.ListFrames(h, conversation) {
		if f.Type == reeve.FrameReport {
			list = append(list, f)
		}
	}
	return list
}

// The report and the media of a scheduled run are one frame and one message in the conversation in which the schedule
// was made: live, on resume, and once. Others see nothing.
func TestW24_ReportReachesItsConversation(t *testing.T) {
	t.Parallel()
	runReport(t, "always", func(t *testing.T, h *reevetest.Host) {
		stranger := kit.NewTokenFor(h, "ann", "member")
		c, other := h.StartConversation("bot"), h.StartConversation("bot")
		live := [2]*reevetest.Socket{h.Connect(c.ID, -1), h.Connect(c.ID, -1)}
		if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "plan it").ID); d.Issues.ToolFailures > 0 {
			t.Fatalf("%+v", d)
		}
		fireSoon(h)
		isReport := func(f reeve.Frame) bool { return f.Type == reeve.FrameReport }
		seen := live[0].ReadUntil(isReport)
		if also := live[1].ReadUntil(isReport); also.Seq != seen.Seq {
			t.Errorf("one client got %+v, the other %+v", seen, also)
		}
		if seen.Title != "morning" || seen.Text != "Here it is." || seen.State != reeve.RunCompleted ||
			seen.ScheduleID == "" || len(seen.Attachments) != 1 || seen.Attachments[0].Name != "chart.txt" ||
			seen.Attachments[0].Caption != "The chart" {
			t.Fatalf("the report is %+v", seen)
		}
		resp := h.Want(http.StatusOK, nil, "GET", "/api/conversations/"+c.ID+"/media/"+seen.Attachments[0].Hash, nil)
		if string(resp.Body) != "up" {
			t.Errorf("the file is %q", resp.Body)
		}
		if late := h.Connect(c.ID, 0).ReadUntil(isReport); late.Seq != seen.Seq {
			t.Errorf("a late client got %+v", late)
		}
		var messages api.MessageList
		h.Want(http.StatusOK, &messages, "GET", "/api/conversations/"+c.ID+"/messages", nil)
		if last := messages.Messages[len(messages.Messages)-1]; last.ID != seen.MessageID ||
			!strings.Contains(last.Content, "Here it is.") || !strings.Contains(string(last.Metadata), "chart.txt") {
			t.Errorf("the last message is %+v", last)
		}
		if n := len(listReports(h, c.ID)); n != 1 || len(kit.ListMediaFrames(h, c.ID)) != 0 ||
			len(listReports(h, other.ID)) != 0 {
			t.Errorf("%d reports, and %d in another conversation", n, len(listReports(h, other.ID)))
		}
		h.Want(http.StatusNotFound, nil, "GET", "/api/conversations/"+c.ID+"/frames", nil, stranger...)
		h.Want(http.StatusNotFound, nil, "GET", "/api/conversations/"+c.ID+"/media/"+seen.Attachments[0].Hash, nil,
			stranger...)
	})
}

// Without a report, the files of a scheduled run reach the conversation when the run ends.
func TestW24_MediaWithoutAReport(t *testing.T) {
	t.Parallel()
	runReport(t, "never", func(t *testing.T, h *reevetest.Host) {
		c := h.StartConversation("bot")
		kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "plan it").ID)
		fireSoon(h)
		kit.Eventually(t, "the file", func() bool { return len(kit.ListMediaFrames(h, c.ID)) == 1 })
		if f := kit.ListMediaFrames(h, c.ID)[0]; f.Text != "The chart" || f.Attachments[0].Name != "chart.txt" ||
			len(listReports(h, c.ID)) != 0 {
			t.Errorf("%+v", f)
		}
	})
}

// A user who has left the conversation gets the notification, which says so. The conversation gets nothing.
func TestW24_ReportOfAUserWhoLeft(t *testing.T) {
	t.Parallel()
	runReport(t, "always", func(t *testing.T, h *reevetest.Host) {
		ann := kit.NewTokenFor(h, "ann", "member")
		var c reeve.Conversation
		h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot",
			"participants": []string{"owner"}}, ann...)
		var turn reeve.Turn
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": "plan it"},
			ann...)
		kit.WaitForTurn(h, turn.ID)
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c.ID+"/participants/ann", nil)
		fireSoon(h)
		var l api.NotificationList
		kit.Eventually(t, "the notification", func() bool {
			h.Want(http.StatusOK, &l, "GET", "/api/notifications", nil, ann...)
			return len(l.Notifications) == 1
		})
		if n := l.Notifications[0]; !strings.Contains(n.Body, "You are no longer in the conversation") {
			t.Errorf("%+v", n)
		}
		if n := len(listReports(h, c.ID)) + len(kit.ListMediaFrames(h, c.ID)); n != 0 {
			t.Errorf("the conversation got %d frames", n)
		}
	})
}
