// Package media has the tools for pictures, documents and recordings. send_media sends a file from the workspace to the
// people of a conversation. image_explain, pdf_explain and audio_explain let a model look at a file and answer a
// question about it.
package media
