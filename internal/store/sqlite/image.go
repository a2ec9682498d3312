package sqlite

import (
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	lib "modernc.org/sqlite/lib"
)

// image is a log as it is in its file, as far as this process knows it. A log that is written past the system's cache, in whole blocks, is on the disk sooner than one that the system writes
// when it is synced, by a third; but it would have to be read from the disk then. So all of the process's connections read from here what it has written itself. Others may write to the log
// too, programs of their own for example: what they wrote is read from the file.
type image struct {
	name   string
	file   os.FileInfo // which one has that name
	given  []byte      // the memory that it is in
	bytes  []byte      // mostSeen of them
	direct int         // the file, for writing past the cache; -1 if it cannot be
	held   int         // by how many connections
	known  atomic.Pointer[stretch]
}

// stretch is what of an image is sure to be as it is in the file: it was written by this process, and committed. A log is written from its beginning again and again, with another salt each time.
type stretch struct {
	salt     [2]uint32
	from, to int64
}

const (
	block    = 4096     // what is written past the cache begins and ends with one
	mostSeen = 32 << 20 // of a log: it holds 16 MB when SQLite begins it anew, and some more if somebody reads meanwhile. What is behind is as SQLite does it
)

var images = struct {
	sync.Mutex
	of map[string]*image
}{of: map[string]*image{}}

// imageOf is that of the log of this name, which is there; nil if there can be none. Of another that had its name before somebody may still have one.
func imageOf(name string) *image {
	file, err := os.Stat(name)
	if err != nil {
		return nil
	}
	images.Lock()
	defer images.Unlock()
	i, ok := images.of[name]
	if !ok || !os.SameFile(i.file, file) {
		given, bytes := reserve(mostSeen)
		if bytes == nil {
			return nil
		}
		i = &image{name: name, file: file, given: given, bytes: bytes, direct: openDirect(name)}
		images.of[name] = i
	}
	i.held++
	return i
}

func (i *image) release() {
	images.Lock()
	defer images.Unlock()
	if i.held--; i.held > 0 {
		return
	}
	if images.of[i.name] == i {
		delete(images.of, i.name)
	}
	closeDirect(i.direct)
	giveBack(i.given)
}

// address is where a part of it begins, for SQLite.
func (i *image) address(from int64) uintptr { return uintptr(unsafe.Pointer(&i.bytes[from])) }

// sure is what of it is as it is in the file, of the log which an index is of. A log is not begun anew while somebody reads in it or writes to it.
func (i *image) sure(index *lib.TWalIndexHdr) (from, to int64) {
	if s := i.known.Load(); s != nil && index != nil && s.salt == saltOf(index) {
		return s.from, s.to
	}
	return 0, 0
}

// read reads bytes of the log, if they are sure to be here.
func (i *image) read(index *lib.TWalIndexHdr, into []byte, at int64) bool {
	from, to := i.sure(index)
	if at < from || at+int64(len(into)) > to {
		return false
	}
	copy(into, i.bytes[at:])
	return true
}

// settle says what of it is as it is in the file, once somebody has written: what was not committed may be written over by others.
func (i *image) settle(index *lib.TWalIndexHdr, from, to int64) {
	if index == nil || index.FmxFrame == 0 {
		i.known.Store(nil)
		return
	}
	page := int64(index.FszPage&0xfe00) + int64(index.FszPage&1)<<16 // 64 kB do not fit
	committed := lib.WAL_HDRSIZE + int64(index.FmxFrame)*(lib.WAL_FRAME_HDRSIZE+page)
	i.known.Store(&stretch{saltOf(index), from, min(to, committed)})
}

// saltOf is that of the log which an index is of.
func saltOf(index *lib.TWalIndexHdr) [2]uint32 {
	return [2]uint32{atomic.LoadUint32(&index.FaSalt[0]), atomic.LoadUint32(&index.FaSalt[1])}
}
