package client

import (
	"context"
	"io"
	"net/http"

	"reeve"
)

// Backup writes a copy of the server's database to w and returns its size. The server stays up. After an error the copy
// is incomplete and must not be used.
func (s ServerService) Backup(ctx context.Context, w io.Writer) (int64, error) {
	r := &request{method: http.MethodGet, path: path("backup")}
	resp, err := s.conn.send(ctx, r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(writer{w}, resp.Body)
	if e, ok := err.(writeError); ok { //nolint:errorlint // writer never wraps it
		return n, &reeve.Error{Code: reeve.Unavailable, Message: "cannot write the backup: " + e.Error(), Err: e.error}
	}
	if err != nil {
		return n, s.conn.requestError(ctx, r, err)
	}
	return n, nil
}

// writer marks its errors, so that a full local disk is not mistaken for a lost connection.
type writer struct{ w io.Writer }

type writeError struct{ error }

func (w writer) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err != nil {
		err = writeError{err}
	}
	return n, err
}
