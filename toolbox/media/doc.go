// Package media has the tools that work with pictures, documents and recordings: send_media sends a file from the
// workspace to the people of a conversation, and image_explain, pdf_explain and audio_explain have a model read one.
package media
