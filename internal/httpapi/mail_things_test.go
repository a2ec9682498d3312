package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// mailThings names an inbox and imports.
type mailThings struct{ inbox, open, ending string }

var noMail = mailThings{inbox: "nobody", open: "imp_none", ending: "imp_none"}

// furnishMail imports a mail.
func furnishMail(t *testing.T, h *reevetest.Host) (x mailThings) {
	t.Helper()
	x.inbox = "alpha's-inbox"
	begin := func(source string) string {
		return decode[reeve.MailImport](t, h.Want(201, nil, "POST", "/api/mail/imports", object{"source": source})).ID
	}
	x.open, x.ending = begin("alpha's mail"), begin("alpha's other mail")
	h.Want(200, nil, "POST", "/api/mail/imports/"+x.open+"/batches?position=1",
		mailLine(object{"message_id": "<alpha@x>", "inbox": x.inbox, "subject": "alpha's secret plan"}))
	return x
}

// mailLine is a line of a batch.
func mailLine(email object) string {
	b, err := json.Marshal(object{"email": email})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func (x mailThings) blot(s string) string {
	return strings.NewReplacer(x.inbox, "#", x.open, "#", x.ending, "#").Replace(s)
}

func (x mailThings) samples() map[string]sample {
	return map[string]sample{
		"listInboxes": {"/api/mail/inboxes", nil, false, reeve.Viewer},
		"deleteInbox": {"/api/mail/inboxes/" + x.inbox, nil, true, reeve.Member},
		"listImports": {"/api/mail/imports", nil, false, reeve.Viewer},
		"startImport": {"/api/mail/imports", object{"source": "mine"}, false, reeve.Member},
		"getImport":   {"/api/mail/imports/" + x.open, nil, true, reeve.Viewer},
		"addImportBatch": {"/api/mail/imports/" + x.open + "/batches?after=1&position=2",
			mailLine(object{"inbox": "mine"}), true, reeve.Member},
		"finishImport": {"/api/mail/imports/" + x.ending + "/finish", nil, true, reeve.Member},
	}
}
