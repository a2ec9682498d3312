package store

// CheckedTables returns the names of the tables that CorruptRows reads.
func CheckedTables() (names []string) {
	for _, c := range tableChecks {
		names = append(names, c.table)
	}
	return names
}
