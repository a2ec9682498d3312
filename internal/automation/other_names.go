package automation

// otherNames lists further function names of tools, for scripts that use the usual names. A name that another tool has
// is left to that tool.
var otherNames = []struct{ name, tool string }{
	{"Files.save", "file_write"},
	{"Memory.createNote", "memory_save"},
	{"Memory.deleteNote", "memory_delete"},
	{"Memory.getNote", "memory_get"},
	{"Memory.listNotesMetadata", "memory_list"},
	{"Memory.searchNotes", "memory_search"},
	{"Memory.updateNote", "memory_update"},
	{"PDF.explain", "pdf_explain"},
	{"Web.fetchParse", "web_fetch"},
}

// addOtherNames adds the further names of the tools that the script has.
func (n functionTable) addOtherNames() {
	for _, other := range otherNames {
		if t, ok := n.byID[other.tool]; ok {
			if _, taken := n.byName[other.name]; !taken {
				n.byName[other.name] = t
			}
		}
	}
}
