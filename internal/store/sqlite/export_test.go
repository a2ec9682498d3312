package sqlite

// Undirected has a database's log written through the system's cache from now on, as where there is no other way.
func Undirected(file string) bool {
	return meddle(file, func(i *image) {
		closeDirect(i.direct)
		i.direct = -1
	})
}

// Directed tells whether a database's log is written past the system's cache.
func Directed(file string) (is bool) {
	return meddle(file, func(i *image) { is = i.direct >= 0 }) && is
}

// Small has little of a database's log kept in memory from now on.
func Small(file string, bytes int) bool {
	return meddle(file, func(i *image) {
		i.bytes = i.bytes[:bytes]
		i.known.Store(nil)
	})
}

func meddle(file string, f func(*image)) bool {
	images.Lock()
	defer images.Unlock()
	i, ok := images.of[file+"-wal"]
	if ok {
		f(i)
	}
	return ok
}

// Layer is the name of what is between SQLite and its files.
func Layer() string { return logged() }
