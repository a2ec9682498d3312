package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"reeve"
)

// convertError converts a system error to a [reeve.Error] that names only the virtual path, because system errors name
// folders of the host. It returns errors of a context and errors that are a [reeve.Error] unchanged.
func convertError(err error, v vpath) error {
	var known *reeve.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	cause := stripPaths(err)
	newError := func(code reeve.Code, format string, args ...any) *reeve.Error {
		e := reeve.Errorf(code, format, args...)
		e.Err = cause
		return e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newError(reeve.ToolFailed, "file not found: %s", v).Hintf("list the folder with file_list")
	case errors.Is(err, syscall.ENOTDIR):
		return newError(reeve.ToolFailed, "not a folder: %s or a folder above it", v).
			Hintf("list the folder with file_list")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return newError(reeve.Validation, "a name in %s is longer than the file system allows", v).
			Hintf("use a shorter name")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return newError(reeve.ToolFailed, "the operating system denies access to %s", v)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return newError(reeve.Unavailable, "the disk is full; %s was not changed", v)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EIO),
		errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return newError(reeve.Unavailable, "%s is temporarily unavailable", v).Hintf("try again later")
	}
	return newError(reeve.ToolFailed, "the operating system cannot access %s", v)
}

// stripPaths returns the cause of a system error without its file names.
func stripPaths(err error) error {
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

func linkError(v vpath) error {
	return reeve.Errorf(reeve.Denied, "%s is a symbolic link, and links are not followed", v).
		Hintf("name the real file or folder, under /shared, /tmp or /project")
}

func specialFileError(v vpath, mode fs.FileMode) error {
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

func folderError(v vpath) error {
	return reeve.Errorf(reeve.ToolFailed, "%s is a folder, not a file", v).Hintf("list it with file_list")
}

func tooLargeError(v vpath, max int64) error {
	return reeve.Errorf(reeve.TooLarge, "%s is larger than the %d bytes allowed here", v, max)
}

func staleError(v vpath) error {
	return reeve.Errorf(reeve.Stale, "%s has changed since this change was prepared; nothing was done", v).
		Hintf("read it again, then make a new change")
}
