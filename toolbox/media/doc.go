// Package media is the pack of send_media, which sends a file from the workspace to the people of a conversation.
package media
