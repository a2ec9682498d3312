// Package notefile reads notes from files of other programs, and reads and writes exports of notes. The CLI uses it,
// with the permissions of its user. It supports folders of Markdown files, CLAUDE.md and AGENTS.md, the memory of an
// OpenClaw workspace, agent files of Letta, and Reeve's own exports.
//
// A file that cannot be read is reported as a [Problem], and the other files are still read. A text that is too long
// for one note is split.
package notefile
