package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"reeve"
)

// fault converts a system error to an error that names only the virtual path, because system errors name folders of the
// host.
func fault(err error, v vpath) error {
	var known *reeve.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	cause := bare(err)
	say := func(code reeve.Code, format string, args ...any) *reeve.Error {
		e := reeve.Errorf(code, format, args...)
		e.Err = cause
		return e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return say(reeve.ToolFailed, "file not found: %s", v).Hintf("list the folder with file_list")
	case errors.Is(err, syscall.ENOTDIR):
		return say(reeve.ToolFailed, "not a folder: %s or a folder above it", v).Hintf("list the folder with file_list")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return say(reeve.Validation, "a name in %s is longer than the file system allows", v).
			Hintf("use a shorter name")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return say(reeve.ToolFailed, "the system does not permit it: %s", v)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return say(reeve.Unavailable, "the disk is full: %s was left as it was", v)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EIO),
		errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return say(reeve.Unavailable, "the system could not serve %s just now", v)
	}
	return say(reeve.ToolFailed, "the system refused to work on %s", v)
}

// bare takes the file names out of a system error.
func bare(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	for {
		switch {
		case errors.As(err, &p):
			err = p.Err
		case errors.As(err, &l):
			err = l.Err
		default:
			return err
		}
	}
}

func isLink(v vpath) error {
	return reeve.Errorf(reeve.Denied, "%s is a symbolic link, and links are not followed", v).
		Hintf("name the real file or folder, under /shared, /tmp or /project")
}

func isSpecial(v vpath, mode fs.FileMode) error {
	kind := "a special file"
	switch {
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return reeve.Errorf(reeve.Denied, "%s is %s", v, kind).Hintf("the file tools work on plain files and folders only")
}

func isFolder(v vpath) error {
	return reeve.Errorf(reeve.ToolFailed, "%s is a folder, not a file", v).Hintf("list it with file_list")
}

func tooLarge(v vpath, max int64) error {
	return reeve.Errorf(reeve.TooLarge, "%s is larger than the %d bytes allowed here", v, max)
}

func movedOn(v vpath) error {
	return reeve.Errorf(reeve.Stale, "%s has changed since this change was worked out; nothing was done", v).
		Hintf("read it again and work the change out anew")
}
