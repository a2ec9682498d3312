package host

import (
	"context"

	"reeve"
	mailsample "reeve/toolbox/mail/sample"
)

// InstallSampleMail puts a small mailbox to try things with into a workspace. Doing it twice is doing it once.
func (h *Host) InstallSampleMail(ctx context.Context, workspace string) (reeve.MailImport, error) {
	if err := h.open(ctx); err != nil {
		return reeve.MailImport{}, err
	}
	return mailsample.Import(ctx, h.db, workspace)
}
