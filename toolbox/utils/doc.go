// Package utils is the pack utils: small things that scripts want and that belong nowhere else. None of them changes
// anything.
package utils
