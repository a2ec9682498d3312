// Package web serves the web console: the files of dist, which are built from the source in this folder.
package web
