// Package media is the pack that sends files to people: what an agent made in its workspace reaches the conversation
// that asked for it.
package media
