package sqlite

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Between SQLite and its files is a layer of ours, for the sake of what is written to its log (wal.go) and read from it (image.go).

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
	opener   = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closer   = func(tls *libc.TLS, file uintptr) int32
	mover    = func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 // xRead, xWrite
	cutter   = func(tls *libc.TLS, file uintptr, size int64) int32
	syncer   = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizer    = func(tls *libc.TLS, file, size uintptr) int32
	control  = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	locker   = func(tls *libc.TLS, file uintptr, from, n, flags int32) int32                   // xShmLock
	mapper   = func(tls *libc.TLS, file uintptr, region, size, extend int32, to uintptr) int32 // xShmMap
	unmapper = func(tls *libc.TLS, file uintptr, remove int32) int32                           // xShmUnmap
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
	log   *log
	file  uintptr           // of the log
	index *lib.TWalIndexHdr // of the log, for all who use it; nil while there is none
}

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
		i := imageOf(libc.GoString(name))
		if i == nil {
			return lib.SQLITE_OK
		}
		b := db.(*base)
		b.log, b.file = &log{below: below, base: b, image: i}, file
		logs.Store(file, b.log)
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
			m.FxClose, m.FxShmLock, m.FxShmMap, m.FxShmUnmap = pointer(closeBase), pointer(lockBase), pointer(mapBase), pointer(unmapBase)
		}
		methods.of[from] = above
	}
	return above
}

func closeBase(tls *libc.TLS, file uintptr) int32 {
	b, _ := bases.LoadAndDelete(file)
	return function[closer](b.(*base).below.FxClose)(tls, file)
}

// mapBase keeps where the index of the log is: its head is the first thing in it.
func mapBase(tls *libc.TLS, file uintptr, region, size, extend int32, to uintptr) int32 {
	b := baseOf(file)
	rc := function[mapper](b.below.FxShmMap)(tls, file, region, size, extend, to)
	if rc == lib.SQLITE_OK && region == 0 {
		b.index = *at[*lib.TWalIndexHdr](to)
	}
	return rc
}

func unmapBase(tls *libc.TLS, file uintptr, remove int32) int32 {
	b := baseOf(file)
	b.index = nil
	return function[unmapper](b.below.FxShmUnmap)(tls, file, remove)
}

// lockBase sees who may write to the log, by the first of its locks.
func lockBase(tls *libc.TLS, file uintptr, from, n, flags int32) int32 {
	b := baseOf(file)
	writes := b.log != nil && from == 0 && flags&lib.SQLITE_SHM_EXCLUSIVE != 0
	if writes && flags&lib.SQLITE_SHM_UNLOCK != 0 {
		b.log.leave(tls, b.file)
	}
	rc := function[locker](b.below.FxShmLock)(tls, file, from, n, flags)
	if writes && flags&lib.SQLITE_SHM_LOCK != 0 && rc == lib.SQLITE_OK {
		b.log.enter()
	}
	return rc
}

func baseOf(file uintptr) *base {
	b, _ := bases.Load(file)
	return b.(*base)
}
