// Package text is the pack of text tools: text_extract, text_classify, text_summarize and text_generate. Scripts and
// agents use them to let a model read or write text.
//
// A long text is split into parts:
//
//	text_extract    extracts data from each part; joins lists without duplicates, otherwise takes the first value
//	text_classify   classifies each part; returns the most frequent label, or with multiple all labels
//	text_summarize  summarizes each part, then the summaries
//
// If an answer is not valid, the model gets one chance to correct it. Then the call fails.
package text
