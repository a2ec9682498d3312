package sqlite

// Undirected has a database's log written through the system's cache from now on, as where there is no other way.
func Undirected(file string) bool {
	images.Lock()
	defer images.Unlock()
	i, ok := images.of[file+"-wal"]
	if ok {
		closeDirect(i.direct)
		i.direct = -1
	}
	return ok
}

// Layer is the name of what is between SQLite and its files.
func Layer() string { return logged() }
