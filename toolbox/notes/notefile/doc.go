// Package notefile reads notes from files of other programs, and reads and writes exports of notes. It serves the CLI,
// which runs with the permissions of its user. It knows Markdown folders, CLAUDE.md and AGENTS.md, the memory of an
// OpenClaw workspace, agent files of Letta, and Reeve's own exports.
//
// A file that cannot be read is a [Problem]; the other files are read. Texts that are too long for a note are split.
package notefile
