// Package uselite runs Universal Sentence Encoder Lite: a model of Google that turns a text of up to 128 tokens into a
// vector of 512 dimensions.
//
//	model, err := uselite.Read(file)
//	vector := model.NewEncoding().Encode(model.Tokens("a text"))
//
// A text is split into pieces of words from a vocabulary of 8,000 (tokenizer.go). Two layers of a transformer relate
// the pieces to each other; their mean passes a last matrix (model.go). Weights have eight bits, and integers are
// multiplied three at a time (matrix.go). Command convert writes the file of the model, in the form of file.go.
//
// Vectors have a cosine of at least 0.998 with those of TensorFlow.js, which does not round weights. The npm package
// differs in texts: it takes line breaks, tabs and control characters for unknown characters, keeps repeated spaces,
// and splits a text that begins with a colon into other pieces. Here texts are cleaned as SentencePiece does.
package uselite
