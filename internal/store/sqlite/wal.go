package sqlite

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes each page of a commit to its log with two small writes, its head and the page, right behind each other. A call changes half a dozen pages, and a write costs a microsecond or two:
// what is written behind one another is kept, and written at once, before it is synced, read or looked at in any other way. With a full sync for each commit, which is how we open databases,
// others learn of nothing in the log before that.

// log is a log's file that is open.
type log struct {
	below *lib.Tsqlite3_io_methods
	base  *base
	image *image
	from  int64 // what is not written yet
	n     int   // bytes of it

	// Of whoever writes to it: what of the image is as it is in the file, or will be once all is written.
	first, end int64
}

// enter begins to write to a log.
func (l *log) enter() { l.first, l.end = l.image.sure(l.base.index) }

// leave ends what is kept of the log before others may write to it. Nothing is then but what was taken back: what was made is synced. It is written all the same, as SQLite itself would have,
// but it is no harm if that fails.
func (l *log) leave(tls *libc.TLS, file uintptr) {
	_ = l.flush(tls, file)
	l.n = 0
	l.image.settle(l.base.index, l.first, l.end)
}

// of is the log of a file.
func of(file uintptr) *log {
	l, _ := logs.Load(file)
	return l.(*log)
}

// flush writes what is kept of a log. If that fails it stays kept: SQLite was told that it is written, and may take back a part of its change only, and go on.
func (l *log) flush(tls *libc.TLS, file uintptr) int32 {
	if l.n == 0 {
		return lib.SQLITE_OK
	}
	if l.flushDirect(tls, file) {
		l.n = 0
	}
	for l.n > 0 {
		n := min(l.n, 64<<10) // as SQLite's own writes are: of a multiple of 128 kB it would write nothing at all
		if rc := function[mover](l.below.FxWrite)(tls, file, l.image.address(l.from), int32(n), l.from); rc != lib.SQLITE_OK {
			return rc
		}
		l.from, l.n = l.from+int64(n), l.n-n
	}
	return lib.SQLITE_OK
}

// flushDirect writes the blocks that hold what is kept, past the system's cache, and tells whether it could. What is before it in its first block and not ours is read; behind all that was
// written there is nothing that counts.
func (l *log) flushDirect(tls *libc.TLS, file uintptr) bool {
	i := l.image
	if i.direct < 0 {
		return false
	}
	from, to := l.from&^(block-1), (l.from+int64(l.n)+block-1)&^(block-1)
	if from < l.first && function[mover](l.below.FxRead)(tls, file, i.address(from), int32(l.first-from), from) != lib.SQLITE_OK {
		return false
	}
	if l.end < to {
		clear(i.bytes[l.end:to])
	}
	return writeDirect(i.direct, i.bytes[from:to], from)
}

func writeLog(tls *libc.TLS, file, data uintptr, n int32, to int64) int32 {
	l := of(file)
	end, most := to+int64(n), int64(len(l.image.bytes))
	if to < most && most < end { // where the image ends
		head := int32(most - to)
		if rc := writeLog(tls, file, data, head, to); rc != lib.SQLITE_OK {
			return rc
		}
		return writeLog(tls, file, data+uintptr(head), n-head, most)
	}
	if l.n > 0 && to != l.from+int64(l.n) || to >= most {
		if rc := l.flush(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if to >= most {
		return function[mover](l.below.FxWrite)(tls, file, data, n, to)
	}
	if to < l.first || to > l.end {
		l.first, l.end = to, to
	}
	if l.n == 0 {
		l.from = to
	}
	copy(l.image.bytes[to:], unsafe.Slice(at[byte](data), n))
	l.n += int(n)
	l.end = max(l.end, end)
	return lib.SQLITE_OK
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	l := of(file)
	rc := l.flush(tls, file)
	logs.Delete(file)
	l.base.log = nil
	l.image.release()
	return max(rc, function[closer](l.below.FxClose)(tls, file))
}

// after writes what is kept of a log, and does then what is to be done below.
func after(tls *libc.TLS, file uintptr, do func(l *log) int32) int32 {
	l := of(file)
	if rc := l.flush(tls, file); rc != lib.SQLITE_OK {
		return rc
	}
	return do(l)
}

func readLog(tls *libc.TLS, file, data uintptr, n int32, from int64) int32 {
	return after(tls, file, func(l *log) int32 {
		if l.image.read(l.base.index, unsafe.Slice(at[byte](data), n), from) {
			return lib.SQLITE_OK
		}
		return function[mover](l.below.FxRead)(tls, file, data, n, from)
	})
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	return after(tls, file, func(l *log) int32 { return function[cutter](l.below.FxTruncate)(tls, file, size) })
}

func sizeLog(tls *libc.TLS, file, size uintptr) int32 {
	return after(tls, file, func(l *log) int32 { return function[sizer](l.below.FxFileSize)(tls, file, size) })
}

func controlLog(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32 {
	return after(tls, file, func(l *log) int32 { return function[control](l.below.FxFileControl)(tls, file, op, arg) })
}

// syncLog syncs a log. What cannot be written then is forgotten: the whole change fails, and that it was made, which the last page says, must not be found in the log by and by.
func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := of(file)
	if rc := l.flush(tls, file); rc != lib.SQLITE_OK {
		l.n = 0
		return rc
	}
	return function[syncer](l.below.FxSync)(tls, file, flags)
}
