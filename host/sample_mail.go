package host

import (
	"context"

	"reeve"
	mailsample "reeve/toolbox/mail/sample"
)

// InstallSampleMail adds a small sample mailbox to a workspace. It is idempotent.
func (h *Host) InstallSampleMail(ctx context.Context, workspace string) (reeve.MailImport, error) {
	if err := h.open(ctx); err != nil {
		return reeve.MailImport{}, err
	}
	return mailsample.Import(ctx, h.db, workspace)
}
