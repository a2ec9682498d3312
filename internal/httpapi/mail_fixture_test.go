package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// mailFixture has the ids of an inbox and two imports.
type mailFixture struct{ inbox, open, ending string }

var missingMail = mailFixture{inbox: "nobody", open: "imp_none", ending: "imp_none"}

// createMailFixture starts two imports, one with a mail.
func createMailFixture(t *testing.T, h *reevetest.Host) (x mailFixture) {
	t.Helper()
	x.inbox = "alpha's-inbox"
	beginImport := func(source string) string {
		return decode[reeve.MailImport](t, h.Want(201, nil, "POST", "/api/mail/imports", object{"source": source})).ID
	}
	x.open, x.ending = beginImport("alpha's mail"), beginImport("alpha's other mail")
	h.Want(200, nil, "POST", "/api/mail/imports/"+x.open+"/batches?position=1",
		encodeMailLine(object{"message_id": "<alpha@x>", "inbox": x.inbox, "subject": "alpha's secret plan"}))
	return x
}

// encodeMailLine returns one line of an import batch.
func encodeMailLine(email object) string {
	b, err := json.Marshal(object{"email": email})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func (x mailFixture) mask(s string) string {
	return strings.NewReplacer(x.inbox, "#", x.open, "#", x.ending, "#").Replace(s)
}

func (x mailFixture) samples() map[string]sample {
	return map[string]sample{
		"listInboxes": {"/api/mail/inboxes", nil, false, reeve.Viewer},
		"deleteInbox": {"/api/mail/inboxes/" + x.inbox, nil, true, reeve.Member},
		"searchMail":  {"/api/mail/search", nil, false, reeve.Viewer},
		"getMail":     {"/api/mail/message?message_id=%3Calpha@x%3E", nil, true, reeve.Viewer},
		"listImports": {"/api/mail/imports", nil, false, reeve.Viewer},
		"startImport": {"/api/mail/imports", object{"source": "mine"}, false, reeve.Member},
		"getImport":   {"/api/mail/imports/" + x.open, nil, true, reeve.Viewer},
		"addImportBatch": {"/api/mail/imports/" + x.open + "/batches?after=1&position=2",
			encodeMailLine(object{"inbox": "mine"}), true, reeve.Member},
		"finishImport": {"/api/mail/imports/" + x.ending + "/finish", nil, true, reeve.Member},
	}
}
