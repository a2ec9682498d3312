package sqlite

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite writes each page of a commit to its log with two small writes, its head and the page, right behind each other. A call changes half a dozen pages, and a write costs a microsecond or two:
// this layer between SQLite and its files keeps what is written to a log behind one another, and writes it at once, before it is synced, read or looked at in any other way. With a full
// sync for each commit, which is how we open databases, others learn of nothing in the log before that.

// logged is the name of the layer, as in a database's address; "" if there is none.
var logged = sync.OnceValue(func() string {
	tls := libc.NewTLS() // for good
	plain := lib.Xsqlite3_vfs_find(tls, 0)
	name, err := libc.CString("reeve")
	if plain == 0 || err != nil {
		return ""
	}
	layer := copied[lib.Tsqlite3_vfs](tls, plain)
	if layer == 0 {
		return ""
	}
	v := at[lib.Tsqlite3_vfs](layer)
	openPlain = v.FxOpen
	v.FzName, v.FpNext, v.FxOpen = name, 0, pointer(openLogged)
	if lib.Xsqlite3_vfs_register(tls, layer, 0) != lib.SQLITE_OK {
		return ""
	}
	return "reeve"
})

// through is what an address says of the layer.
func through(name string) string {
	if name == "" {
		return ""
	}
	return "&vfs=" + name
}

// copied is the address of a copy of what another holds, 0 if there is no memory. What SQLite looks at must be in memory of its own.
func copied[T any](tls *libc.TLS, address uintptr) uintptr {
	to := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*new(T))))
	if to != 0 {
		*at[T](to) = *at[T](address)
	}
	return to
}

// at is what an address of SQLite's holds.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointer is a function as SQLite keeps it. Only those that are there for good can be kept so.
func pointer(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

// function is what pointer was given.
func function[F any](kept uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{kept})) }

type (
	opener  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closer  = func(tls *libc.TLS, file uintptr) int32
	mover   = func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 // xRead, xWrite
	cutter  = func(tls *libc.TLS, file uintptr, size int64) int32
	syncer  = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizer   = func(tls *libc.TLS, file, size uintptr) int32
	control = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	locker  = func(tls *libc.TLS, file uintptr, from, n, flags int32) int32 // xShmLock
)

var (
	openPlain uintptr    // xOpen of what is below
	logs      sync.Map   // *log, by address of its file
	bases     sync.Map   // *base, by address of the database's file
	methods   = struct { // ours, by those of what is below
		sync.Mutex
		of map[source]uintptr
	}{of: map[source]uintptr{}}
)

// source is what methods of ours are made of: those below, of a log or of a database.
type source struct {
	below uintptr
	log   bool
}

// base is a database's file that is open.
type base struct {
	below *lib.Tsqlite3_io_methods
	log   uintptr // the file of its log; 0 while there is none
}

// log is a log's file that is open.
type log struct {
	below *lib.Tsqlite3_io_methods
	base  *base
	from  int64
	kept  uintptr // what belongs there, and is not written yet
	n     int     // bytes of it
}

// mostKept is how much of a log is kept: more than most commits are.
const mostKept = 128 << 10

func openLogged(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	rc := function[opener](openPlain)(tls, vfs, name, file, flags, out)
	if rc != lib.SQLITE_OK || flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_DB) == 0 {
		return rc
	}
	f := at[lib.Tsqlite3_file](file)
	from := source{f.FpMethods, flags&lib.SQLITE_OPEN_WAL != 0}
	above := methodsOf(tls, from)
	if above == 0 {
		return lib.SQLITE_OK // it does without
	}
	below := at[lib.Tsqlite3_io_methods](from.below)
	if from.log {
		db, ok := bases.Load(lib.Xsqlite3_database_file_object(tls, name))
		if !ok {
			return lib.SQLITE_OK
		}
		kept := libc.Xmalloc(tls, mostKept)
		if kept == 0 {
			return lib.SQLITE_OK
		}
		logs.Store(file, &log{below: below, base: db.(*base), kept: kept})
		db.(*base).log = file
	} else {
		bases.Store(file, &base{below: below})
	}
	f.FpMethods = above
	return lib.SQLITE_OK
}

// methodsOf makes ours, once.
func methodsOf(tls *libc.TLS, from source) uintptr {
	methods.Lock()
	defer methods.Unlock()
	above, ok := methods.of[from]
	if !ok {
		if above = copied[lib.Tsqlite3_io_methods](tls, from.below); above == 0 {
			return 0
		}
		m := at[lib.Tsqlite3_io_methods](above)
		if from.log {
			m.FxClose, m.FxRead, m.FxWrite, m.FxTruncate = pointer(closeLog), pointer(readLog), pointer(writeLog), pointer(truncateLog)
			m.FxSync, m.FxFileSize, m.FxFileControl = pointer(syncLog), pointer(sizeLog), pointer(controlLog)
		} else {
			m.FxClose, m.FxShmLock = pointer(closeBase), pointer(lockBase)
		}
		methods.of[from] = above
	}
	return above
}

func closeBase(tls *libc.TLS, file uintptr) int32 {
	b, _ := bases.LoadAndDelete(file)
	return function[closer](b.(*base).below.FxClose)(tls, file)
}

// lockBase ends what is kept of the log before others may write to it. Nothing is then but what was taken back: what was made is synced. It is written all the same, as SQLite itself would have,
// but it is no harm if that fails.
func lockBase(tls *libc.TLS, file uintptr, from, n, flags int32) int32 {
	l, _ := bases.Load(file)
	b := l.(*base)
	if b.log != 0 && from == 0 && flags == lib.SQLITE_SHM_UNLOCK|lib.SQLITE_SHM_EXCLUSIVE { // the first of its locks is that of whoever writes
		l, _ := flushed(tls, b.log)
		l.n = 0
	}
	return function[locker](b.below.FxShmLock)(tls, file, from, n, flags)
}

// of is the log of a file.
func of(file uintptr) *log {
	l, _ := logs.Load(file)
	return l.(*log)
}

// flushed writes what is kept of a log. If that fails it stays kept: SQLite was told that it is written, and may take back a part of its change only, and go on.
func flushed(tls *libc.TLS, file uintptr) (l *log, rc int32) {
	l = of(file)
	if l.n == 0 {
		return l, lib.SQLITE_OK
	}
	if rc = function[mover](l.below.FxWrite)(tls, file, l.kept, int32(l.n), l.from); rc == lib.SQLITE_OK {
		l.n = 0
	}
	return l, rc
}

func writeLog(tls *libc.TLS, file, data uintptr, n int32, to int64) int32 {
	l := of(file)
	if l.n > 0 && (to != l.from+int64(l.n) || l.n+int(n) > mostKept) {
		if _, rc := flushed(tls, file); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if int(n) > mostKept {
		return function[mover](l.below.FxWrite)(tls, file, data, n, to)
	}
	if l.n == 0 {
		l.from = to
	}
	copy(unsafe.Slice(at[byte](l.kept+uintptr(l.n)), n), unsafe.Slice(at[byte](data), n))
	l.n += int(n)
	return lib.SQLITE_OK
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	l, rc := flushed(tls, file)
	logs.Delete(file)
	l.base.log = 0
	libc.Xfree(tls, l.kept)
	return max(rc, function[closer](l.below.FxClose)(tls, file))
}

// after writes what is kept of a log, and does then what is to be done below.
func after(tls *libc.TLS, file uintptr, do func(below *lib.Tsqlite3_io_methods) int32) int32 {
	l, rc := flushed(tls, file)
	if rc != lib.SQLITE_OK {
		return rc
	}
	return do(l.below)
}

func readLog(tls *libc.TLS, file, data uintptr, n int32, from int64) int32 {
	return after(tls, file, func(m *lib.Tsqlite3_io_methods) int32 { return function[mover](m.FxRead)(tls, file, data, n, from) })
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	return after(tls, file, func(m *lib.Tsqlite3_io_methods) int32 { return function[cutter](m.FxTruncate)(tls, file, size) })
}

func sizeLog(tls *libc.TLS, file, size uintptr) int32 {
	return after(tls, file, func(m *lib.Tsqlite3_io_methods) int32 { return function[sizer](m.FxFileSize)(tls, file, size) })
}

func controlLog(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32 {
	return after(tls, file, func(m *lib.Tsqlite3_io_methods) int32 { return function[control](m.FxFileControl)(tls, file, op, arg) })
}

// syncLog syncs a log. What cannot be written then is forgotten: the whole change fails, and that it was made, which the last page says, must not be found in the log by and by.
func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	l, rc := flushed(tls, file)
	if rc != lib.SQLITE_OK {
		l.n = 0
		return rc
	}
	return function[syncer](l.below.FxSync)(tls, file, flags)
}
