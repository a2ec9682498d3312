// Package embed turns texts into vectors, so that texts can be found by meaning.
package embed
