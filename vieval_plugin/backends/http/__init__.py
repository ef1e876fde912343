"""Chats, likelihoods and scores through servers."""
