"""Verilog text: conversion, cache, and modules shared between presets."""
