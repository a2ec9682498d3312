// Package text is the pack of the tools with which scripts and agents have a model read and write text: text_extract,
// text_classify, text_summarize and text_generate.
//
// A text longer than a part is read in parts:
//
//	text_extract    each part is extracted; lists are joined without duplicates, otherwise the first value counts
//	text_classify   each part is classified; the label of most parts counts, or with multiple all labels
//	text_summarize  each part is summarized, then the summaries
//
// An answer that does not fit is corrected by the model once. Then the call fails.
package text
